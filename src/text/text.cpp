#include "reshard/text.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/try.hpp"
#include "src/layout/axes.hpp"
#include "src/layout/flattened.hpp"
#include "src/text/cut.hpp"
#include "src/text/scanner.hpp"

namespace reshard {

using notation::Scanner;

namespace {

// A list is kept device by device; beyond so many it is a slip of the pen.
constexpr Index devices_max = Index{1} << 22;

// devices := "[" range {"," range} "]"; range := device ["-" device]
Result<std::vector<Index>> scan_devices(Scanner& scanner, Index most) {
    std::vector<Index> devices;
    do {
        const std::size_t begin = scanner.offset();
        RESHARD_TRY(const auto& first, scanner.integer("a device"));
        Index last = first;
        if (scanner.take('-')) {
            RESHARD_ASSIGN(last, scanner.integer("the last device of a range"));
        }
        if (last < first) return scanner.error(Code::syntax, "a range of devices descends", begin);
        if (last - first >= most - static_cast<Index>(devices.size()))
            return scanner.error(Code::mesh, fmt::format("more devices than the mesh's {} positions", most), begin);
        if (last - first >= devices_max - static_cast<Index>(devices.size()))
            return scanner.error(Code::unsupported, fmt::format("a list of more than {} devices", devices_max), begin);
        // Counted, since `last` may be the largest Index.
        for (Index i = 0; i <= last - first; ++i) devices.push_back(first + i);
    } while (scanner.take(','));
    RESHARD_CHECK(scanner.expect(']'));
    return devices;
}

std::string format_devices(std::span<const Index> devices) {
    std::string text;
    for (std::size_t i = 0; i < devices.size();) {
        std::size_t end = i + 1;
        while (end < devices.size() && devices[end] == devices[end - 1] + 1) ++end;
        text += fmt::format("{}{}", text.empty() ? "" : ",", devices[i]);
        if (end - i > 1) text += fmt::format("{}{}", end - i > 2 ? "-" : ",", devices[end - 1]);
        i = end;
    }
    return "[" + text + "]";
}

}  // namespace

Result<Mesh> parse_mesh(std::string_view text) {
    Scanner scanner(text);
    Mesh mesh;
    AxisRules rules;
    if (scanner.at_end()) return mesh;
    std::size_t begin = scanner.offset();
    if (!scanner.sees('[')) do {
            begin = scanner.place();
            const std::string name(scanner.word());
            if (name.empty()) return scanner.error(Code::syntax, "expected an axis name", begin);
            RESHARD_CHECK(scanner.expect('='));
            RESHARD_TRY(const auto& size, scanner.integer("the axis size"));
            mesh.axes.push_back({name, size});
            RESHARD_CHECK(scanner.at(rules.allow(mesh.axes.back()), begin));
        } while (scanner.take(','));
    if (scanner.sees('[')) {
        begin = scanner.offset();
        (void)scanner.take('[');
        RESHARD_TRY(auto& devices, scan_devices(scanner, rules.devices()));
        mesh.devices = DeviceList(std::move(devices));
        RESHARD_CHECK(scanner.at(validate(mesh), begin));
    }
    RESHARD_CHECK(scanner.expect_end());
    return mesh;
}

std::string format(const Mesh& mesh) {
    std::string text;
    for (const Axis& axis : mesh.axes) text += fmt::format("{}{}={}", text.empty() ? "" : ",", axis.name, axis.size);
    return mesh.devices.in_order() ? text : text + format_devices(mesh.devices.devices());
}

namespace {

// A dimension that is cut by itself.
Result<Dim> scan_cut_dim(Scanner& scanner, const Mesh& mesh, AtomList& used) {
    Dim dim;
    RESHARD_ASSIGN(dim.extent, scanner.integer("the extent of a dimension"));
    if (scanner.take('@')) {
        RESHARD_TRY(auto& atoms, notation::scan_dim_axes(scanner, mesh, used));
        dim.atoms = canonical(atoms);
        return notation::scan_cut(scanner, std::move(dim));
    }
    return dim;
}

// Dimensions as one: each of their tiles is flattened, and the axes behind them deal it out in units.
Result<Dim> scan_flattened(Scanner& scanner, const Mesh& mesh, AtomList& used) {
    const std::size_t begin = scanner.offset();
    std::vector<Dim> dims;
    do {
        RESHARD_TRY(auto& dim, scan_cut_dim(scanner, mesh, used));
        dims.push_back(std::move(dim));
    } while (scanner.take(','));
    RESHARD_CHECK(scanner.expect(')'));
    return notation::scan_dealt(scanner, mesh, used, dims, begin);
}

Result<Dim> scan_dim(Scanner& scanner, const Mesh& mesh, AtomList& used) {
    return scanner.take('(') ? scan_flattened(scanner, mesh, used) : scan_cut_dim(scanner, mesh, used);
}

}  // namespace

Result<Layout> parse_layout(const Mesh& mesh, std::string_view text) {
    RESHARD_CHECK(validate(mesh));
    Scanner scanner(text);
    const std::size_t begin = scanner.place();
    Layout layout;
    layout.mesh = mesh;
    RESHARD_ASSIGN(layout.dtype, scanner.at(parse_dtype(scanner.word()), begin));
    AtomList used;
    RESHARD_CHECK(scanner.expect('['));
    if (!scanner.take(']')) {
        do {
            RESHARD_TRY(auto& dim, scan_dim(scanner, mesh, used));
            layout.dims.push_back(dim);
        } while (scanner.take(','));
        RESHARD_CHECK(scanner.expect(']'));
    }
    if (scanner.take('{')) {
        const std::size_t place = scanner.place();
        const std::string_view word = scanner.word();
        const auto reduction = parse_reduction(word);
        if (word == "sum" || (word != "U" && !reduction))
            return scanner.error(Code::syntax, "expected U (a sum), max, min, prod or avg, for the unreduced axes",
                                 place);
        layout.reduction = reduction.value_or(Reduction::sum);
        const std::size_t over = scanner.place();
        Index by = 0;
        if (layout.reduction == Reduction::avg && scanner.take('/')) {
            RESHARD_TRY(const auto& number, scanner.integer("what the sum is divided by"));
            if (number < 1) return scanner.error(Code::layout, "a sum is divided by at least 1", over);
            by = number;
        }
        RESHARD_CHECK(scanner.expect(':'));
        RESHARD_TRY(auto& atoms, notation::scan_dim_axes(scanner, mesh, used));
        layout.unreduced = as_set(atoms);
        if (by > 0) {
            if (summand_count(layout) % by != 0)
                return scanner.error(Code::layout,
                                     fmt::format("{} summands are not divided by {}", summand_count(layout), by), over);
            divide_by(layout, by);
        }
        RESHARD_CHECK(scanner.expect('}'));
    }
    RESHARD_CHECK(scanner.expect_end());
    RESHARD_CHECK(scanner.at(validate(layout), begin));
    return layout;
}

namespace {

std::string format_atoms(const Mesh& mesh, const AtomList& atoms) {
    std::string text;
    std::size_t names = 0;
    for (const Atom& atom : atoms) {
        const auto parts = names_of(mesh, atom);
        // An atom without a name in this mesh prints as the bare digit it is.
        if (!parts) {
            text += fmt::format("{}?{}:{}", names++ > 0 ? "," : "", atom.size, atom.stride);
            continue;
        }
        for (const SubAxis& part : *parts) {
            text += fmt::format("{}{}", names++ > 0 ? "," : "", part.axis);
            if (part.size != 0) text += fmt::format(":({}){}", part.before, part.size);
        }
    }
    return names == 1 ? text : "(" + text + ")";
}

std::string format_cut_dim(const Mesh& mesh, const Dim& dim, const std::string& cut) {
    if (dim.atoms.empty()) return fmt::format("{}", dim.extent);
    return fmt::format("{}@{}{}", dim.extent, format_atoms(mesh, dim.atoms), cut);
}

// A dimension whose cut would be a list of pieces may be flattened ones.
std::string format_dim(const Mesh& mesh, const Dim& dim) {
    const std::string cut = notation::format_cut(dim);
    const auto flat = cut.find(':') == std::string::npos ? std::nullopt : unflattened(dim);
    if (!flat) return format_cut_dim(mesh, dim, cut);
    std::string text;
    for (const Dim& one : flat->dims)
        text += (text.empty() ? "" : ",") + format_cut_dim(mesh, one, notation::format_cut(one));
    text = fmt::format("({})@{}", text, format_atoms(mesh, flat->axes));
    const bool even = std::ranges::all_of(flat->units, [](Index units) { return units == 1; });
    return even ? text : fmt::format("{}[{}]", text, fmt::join(flat->units, ","));
}

}  // namespace

std::string format(const Layout& layout) {
    std::string text = fmt::format("{}[", name(layout.dtype));
    for (std::size_t i = 0; i < layout.dims.size(); ++i)
        text += (i > 0 ? "," : "") + format_dim(layout.mesh, layout.dims[i]);
    text += "]";
    if (!layout.unreduced.empty()) {
        const std::string_view kind = layout.reduction == Reduction::sum ? "U" : name(layout.reduction);
        const std::string by = layout.summed > 1 ? fmt::format("/{}", divisor(layout)) : "";
        text += fmt::format("{{{}{}:{}}}", kind, by, format_atoms(layout.mesh, layout.unreduced));
    }
    return text;
}

std::string format(const Plan& plan) {
    std::string text = fmt::format("mesh {}\nsource {}\n", format(plan.source.mesh), format(plan.source));
    if (!plan.network.empty()) text += fmt::format("network {}\n", fmt::join(plan.network, ","));
    const Mesh* mesh = &plan.source.mesh;
    const auto add = [&](std::string_view word, const Layout& layout) {
        if (layout.mesh != *mesh) text += fmt::format("mesh {}\n", format(layout.mesh));
        mesh = &layout.mesh;
        text += fmt::format("{} {}\n", word, format(layout));
    };
    for (const Step& step : plan.steps) add(name(step.kind), step.layout);
    add("target", plan.target);
    return text;
}

namespace {

struct Line {
    std::string_view word;
    std::string_view rest;
    std::size_t offset = 0;  // of `rest` in the whole text
};

// The lines of `text` that hold anything, split at the first space.
std::vector<Line> split_lines(std::string_view text) {
    std::vector<Line> lines;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        const std::string_view line = text.substr(begin, end - begin);
        const std::size_t space = std::min(line.find(' '), line.size());
        if (!line.empty()) lines.push_back({line.substr(0, space), line.substr(space), begin + space});
        begin = end + 1;
    }
    return lines;
}

// Blocks of devices from the inside out.
Result<Network> parse_network(std::string_view text) {
    Scanner scanner(text);
    RESHARD_TRY(auto& network, notation::scan_numbers(scanner, "a number of devices", 1));
    RESHARD_CHECK(scanner.at(validate(network), 0));
    RESHARD_CHECK(scanner.expect_end());
    return network;
}

}  // namespace

Result<Plan> parse_plan(std::string_view text) {
    const std::vector<Line> lines = split_lines(text);
    const auto placed = [&](Error error, const Line& line) {
        return tl::unexpected(
            Error{error.code, error.message, std::string(text), line.offset + (error.text.empty() ? 0 : error.offset)});
    };
    const auto wants = [&](std::size_t index, std::string_view word) -> Result<void> {
        if (index < lines.size() && lines[index].word == word) return {};
        const std::size_t offset = index < lines.size() ? lines[index].offset : text.size();
        return tl::unexpected(
            Error{Code::syntax, fmt::format("expected a line '{} ...'", word), std::string(text), offset});
    };
    RESHARD_CHECK(wants(0, "mesh"));
    RESHARD_CHECK(wants(1, "source"));
    RESHARD_CHECK(wants(std::max<std::size_t>(lines.size(), 3) - 1, "target"));
    auto mesh = parse_mesh(lines[0].rest);
    if (!mesh) return placed(mesh.error(), lines[0]);
    Plan plan;
    for (std::size_t i = 1; i < lines.size(); ++i) {
        if (i == 2 && lines[i].word == "network") {
            auto network = parse_network(lines[i].rest);
            if (!network) return placed(network.error(), lines[i]);
            plan.network = std::move(*network);
            continue;
        }
        if (lines[i].word == "mesh") {
            mesh = parse_mesh(lines[i].rest);
            if (!mesh) return placed(mesh.error(), lines[i]);
            continue;
        }
        auto layout = parse_layout(*mesh, lines[i].rest);
        if (!layout) return placed(layout.error(), lines[i]);
        if (i == 1) {
            plan.source = std::move(*layout);
        } else if (i + 1 == lines.size()) {
            plan.target = std::move(*layout);
        } else {
            const auto kind = parse_step_kind(lines[i].word);
            if (!kind) return placed(kind.error(), lines[i]);
            plan.steps.push_back({*kind, std::move(*layout)});
        }
    }
    return plan;
}

std::string format_bytes(Index bytes) {
    if (bytes < 1024) return bytes == 0 ? "0" : fmt::format("{} B", bytes);
    constexpr std::array<std::string_view, 6> units = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = static_cast<double>(bytes) / 1024;
    std::size_t unit = 0;
    // 1023.95 would print as 1024.0
    for (; value >= 1023.95 && unit + 1 < units.size(); ++unit) value /= 1024;
    return fmt::format("{:.1f} {}", value, units[unit]);
}

namespace {

constexpr Index KB = 1000;
constexpr Index KiB = 1024;
constexpr std::array<notation::Unit, 14> byte_units = {{{"", 1},
                                                        {"B", 1},
                                                        {"KiB", KiB},
                                                        {"MiB", KiB* KiB},
                                                        {"GiB", KiB* KiB* KiB},
                                                        {"TiB", KiB* KiB* KiB* KiB},
                                                        {"PiB", KiB* KiB* KiB* KiB* KiB},
                                                        {"EiB", KiB* KiB* KiB* KiB* KiB* KiB},
                                                        {"KB", KB},
                                                        {"MB", KB* KB},
                                                        {"GB", KB* KB* KB},
                                                        {"TB", KB* KB* KB* KB},
                                                        {"PB", KB* KB* KB* KB* KB},
                                                        {"EB", KB* KB* KB* KB* KB* KB}}};

}  // namespace

Result<Index> parse_bytes(std::string_view text) {
    Scanner scanner(text);
    RESHARD_TRY(const auto& bytes, notation::scan_quantity(scanner, "a size in bytes", byte_units));
    RESHARD_CHECK(scanner.expect_end());
    return bytes;
}

}  // namespace reshard
