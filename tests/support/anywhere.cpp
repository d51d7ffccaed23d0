#include "support/anywhere.hpp"

#include <algorithm>
#include <random>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reshard/text.hpp"

namespace reshard::test {

namespace {

using Random = std::mt19937_64;

Index below(Random& random, Index bound) { return static_cast<Index>(random() % static_cast<std::uint64_t>(bound)); }

// A mesh over some of the devices, and its axes that are still unused.
struct Drawn {
    std::string text;
    std::vector<Index> sizes;
    std::vector<std::size_t> free;
};

Drawn draw_mesh(Random& random, Index ranks, char letter) {
    Drawn mesh;
    Index devices = 1;
    const Index axes = below(random, 4);
    for (Index i = 0; i < axes; ++i) {
        mesh.sizes.push_back(1 + below(random, std::min<Index>(ranks / devices, 4)));
        mesh.free.push_back(static_cast<std::size_t>(i));
        mesh.text += fmt::format("{}{}{}={}", i == 0 ? "" : ",", letter, i, mesh.sizes.back());
        devices *= mesh.sizes.back();
    }
    std::ranges::shuffle(mesh.free, random);
    if (below(random, 3) == 0) return mesh;
    std::vector<Index> order(static_cast<std::size_t>(ranks));
    for (Index i = 0; i < ranks; ++i) order[static_cast<std::size_t>(i)] = i;
    // Any devices in any order, or the first or the last devices in order.
    const Index manner = below(random, 4);
    if (manner == 0) std::ranges::reverse(order);
    if (manner > 1) std::ranges::shuffle(order, random);
    order.resize(static_cast<std::size_t>(devices));
    if (manner == 1) std::ranges::sort(order);
    mesh.text += fmt::format("[{}]", fmt::join(order, ","));
    return mesh;
}

std::string axes_text(const std::vector<std::size_t>& axes, char letter) {
    std::vector<std::string> names;
    for (const std::size_t axis : axes) names.push_back(fmt::format("{}{}", letter, axis));
    return names.size() == 1 ? names.front() : fmt::format("({})", fmt::join(names, ","));
}

std::string cut_text(Random& random, Index extent, Index shards) {
    const Index manner = below(random, 6);
    if (manner == 0) return fmt::format("/{}", 1 + below(random, 4));
    if (manner == 1) {
        std::vector<Index> shares(static_cast<std::size_t>(shards), 0);
        for (Index i = 0; i < extent; ++i) ++shares[static_cast<std::size_t>(below(random, shards))];
        return fmt::format("[{}]", fmt::join(shares, ","));
    }
    if (manner == 2 && extent > 0) {
        std::string text;
        for (Index end = 0; end < extent;) {
            end += 1 + below(random, extent - end);
            text += fmt::format("{}{}:{}", text.empty() ? "" : ",", end, below(random, shards));
        }
        return "[" + text + "]";
    }
    return manner == 3 ? "[balanced]" : "";
}

std::string draw_layout(Random& random, Drawn mesh, char letter, std::string_view dtype,
                        const std::vector<Index>& shape, std::string_view reduction) {
    std::string text = fmt::format("{}[", dtype);
    for (std::size_t i = 0; i < shape.size(); ++i) {
        std::vector<std::size_t> axes;
        Index shards = 1;
        while (!mesh.free.empty() && below(random, 2) == 0) {
            axes.push_back(mesh.free.back());
            shards *= mesh.sizes[axes.back()];
            mesh.free.pop_back();
        }
        text += fmt::format("{}{}", i == 0 ? "" : ",", shape[i]);
        if (!axes.empty()) text += "@" + axes_text(axes, letter) + cut_text(random, shape[i], shards);
    }
    text += "]";
    if (!reduction.empty() && !mesh.free.empty())
        text += fmt::format("{{{}:{}}}", reduction, axes_text(mesh.free, letter));
    return text;
}

}  // namespace

std::string random_question(std::uint64_t seed, Index ranks) {
    Random random(seed);
    const Drawn source_mesh = draw_mesh(random, ranks, 'a');
    const bool one_mesh = below(random, 3) == 0;
    const Drawn target_mesh = one_mesh ? source_mesh : draw_mesh(random, ranks, 'b');
    std::vector<Index> shape(static_cast<std::size_t>(below(random, 4)));
    const bool divides = below(random, 3) == 0;
    for (Index& extent : shape) extent = divides ? 12 * (1 + below(random, 2)) : below(random, 14);
    constexpr std::array<std::string_view, 6> dtypes = {"u8", "i16", "f32", "bf16", "c64", "f64"};
    const std::string_view dtype = dtypes[static_cast<std::size_t>(below(random, 6))];
    constexpr std::array<std::string_view, 4> reductions = {"U", "prod", "max", "avg"};
    std::string_view reduction = reductions[static_cast<std::size_t>(below(random, 4))];
    if (reduction == "max" && dtype[0] == 'c') reduction = "avg";
    if (reduction == "avg" && (dtype[0] == 'u' || dtype[0] == 'i')) reduction = "max";
    const bool reduces = below(random, 4) == 0;
    const bool spreads = !one_mesh && below(random, 8) == 0;
    const std::string source = draw_layout(random, source_mesh, 'a', dtype, shape, reduces ? reduction : "");
    const std::string target =
        draw_layout(random, target_mesh, one_mesh ? 'a' : 'b', dtype, shape, spreads ? reduction : "");
    return fmt::format("{}\n{}\n{}\n{}", source_mesh.text, source, target_mesh.text, target);
}

rc::Gen<std::string> questions(Index ranks) {
    return rc::gen::map(rc::gen::noShrink(between<std::uint64_t>(0, std::uint64_t{1} << 40)),
                        [ranks](std::uint64_t seed) { return random_question(seed, ranks); });
}

Problem problem_of(const std::string& question) {
    std::array<std::string, 4> lines;
    std::size_t line = 0;
    for (const char c : question) {
        if (c == '\n')
            ++line;
        else
            lines.at(line) += c;
    }
    const auto must = [&](auto parsed) {
        if (!parsed) throw std::logic_error(question + "\n" + parsed.error().message);
        return *parsed;
    };
    return {must(parse_layout(must(parse_mesh(lines[0])), lines[1])),
            must(parse_layout(must(parse_mesh(lines[2])), lines[3]))};
}

}  // namespace reshard::test
