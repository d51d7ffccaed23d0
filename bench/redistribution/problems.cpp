#include "redistribution/problems.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "reshard/text.hpp"
#include "src/copy/copy.hpp"

namespace reshard::bench {
namespace {

std::uint32_t value_at(Index place) {
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(place) * 0x9e3779b97f4a7c15u >> 32);
}

// Visits the tile in a slot, run by run of the last dimension: its place in the array, its place in memory, how many.
template <class Visit>
void visit_runs(const Slot& slot, const std::vector<Index>& shape, const Visit& visit) {
    const Box box = as_box(slot.tile);
    const Region region = region_of(slot, box, 4);
    if (count(box) == 0) return;
    const std::size_t dims = box.size();
    std::vector<Index> at(dims, 0);
    while (true) {
        Index place = 0;
        Index memory = region.offset_bytes;
        for (std::size_t k = 0; k < dims; ++k) {
            place = place * shape[k] + box[k].begin + at[k];
            memory += at[k] * region.strides_bytes[k];
        }
        visit(place, memory, region.strides_bytes.back(), box.back().size());
        std::size_t k = dims - 1;
        while (k > 0 && ++at[k - 1] == box[k - 1].size()) at[--k] = 0;
        if (k == 0) return;
    }
}

// Extents are the numbers from 512 on.
std::string divided(const std::string& layout, Index divisor) {
    std::string text;
    for (auto at = layout.begin(); at != layout.end();) {
        const auto end = std::find_if_not(at, layout.end(), [](unsigned char c) { return std::isdigit(c); });
        const Index number = end - at >= 3 ? std::stoll(std::string(at, end)) : 0;
        if (number >= 512) {
            text += std::to_string(number / divisor);
        } else {
            text.append(at, end);
        }
        at = end;
        if (at != layout.end()) text += *at++;
    }
    return text;
}

}  // namespace

std::vector<Question> questions(int ranks, Index divisor) {
    const std::string x = "x=" + std::to_string(ranks);
    std::vector<Question> all = {{"rows to columns", x, "f32[8192@x,8192]", "f32[8192,8192@x]"},
                                 {"uneven 10007x6661", x, "f32[10007@x,6661]", "f32[10007,6661@x]"},
                                 {"slab x to slab z", x, "f32[512@x,512,512]", "f32[512,512,512@x]"},
                                 {"A to its transpose", x, "f32[8192@x,8192]", "f32[8192,8192@x]", true},
                                 {"small 512x512", x, "f32[512@x,512]", "f32[512,512@x]"}};
    const std::string p = "f32[512@x,512@y,512]";
    const std::string b = "f32[8192@x,8192@y]";
    if (ranks == 8) {
        const std::string grid = "x=2,y=4";
        all.insert(all.end(), {{"grid 2x4 to 4x2", grid, b, "f32[8192@y,8192@x]"},
                               {"permuted grid", grid, b, "f32[8192@y:(2)2,8192@(x,y:(1)2)]"},
                               {"replicate over part", grid, "f32[8192@(x,y),8192]", "f32[8192@x,8192]"},
                               {"pencil x to pencil y", grid, p, "f32[512@x,512,512@y]"},
                               {"pencil to slab", grid, p, "f32[512@(x,y),512,512]"},
                               {"cube to slab", "x=2,y=2,z=2", "f32[512@x,512@y,512@z]", "f32[512@(x,y,z),512,512]"}});
    }
    if (ranks == 4) {
        const std::string grid = "x=2,y=2";
        all.insert(all.end(), {{"rows to 2x2", grid, "f32[8192@(x,y),8192]", b},
                               {"permuted grid", grid, b, "f32[8192@y,8192@x]"},
                               {"replicate over part", grid, "f32[8192@(x,y),8192]", "f32[8192@x,8192]"},
                               {"pencil x to pencil y", grid, p, "f32[512@x,512,512@y]"},
                               {"pencil to slab", grid, p, "f32[512@(x,y),512,512]"},
                               {"square to slab", grid, "f32[512,512@x,512@y]", "f32[512@(x,y),512,512]"}});
    }
    for (Question& question : all) {
        question.source = divided(question.source, divisor);
        question.target = divided(question.target, divisor);
    }
    return ranks == 8 || ranks == 4 || ranks == 2 ? all : std::vector<Question>();
}

Result<Case> make_case(const Question& question, Index rank) {
    const auto mesh = parse_mesh(question.mesh);
    if (!mesh) return tl::unexpected(mesh.error());
    auto source = parse_layout(*mesh, question.source);
    if (!source) return tl::unexpected(source.error());
    const auto target_mesh = question.target_mesh.empty() ? mesh : parse_mesh(question.target_mesh);
    if (!target_mesh) return tl::unexpected(target_mesh.error());
    auto target = parse_layout(*target_mesh, question.target);
    if (!target) return tl::unexpected(target.error());
    auto made = synthesize(*source, *target);
    if (!made) return tl::unexpected(made.error());
    Case one{question, {*source, *target}, made->plan(), {}, {}};
    if (question.turned) one.storages.target = column_major(tile(*target, rank));
    auto whole = lower({*source, *target, {{StepKind::exchange, *target}}}, rank, one.storages);
    if (!whole) return tl::unexpected(whole.error());
    one.whole = std::move(*whole);
    return one;
}

void fill(const Case& one, std::span<std::byte> source) {
    visit_runs(one.whole.steps.front().from, shape(one.problem.source),
               [&](Index place, Index memory, Index stride, Index elements) {
                   for (Index i = 0; i < elements; ++i) {
                       const std::uint32_t value = value_at(place + i);
                       std::memcpy(source.data() + memory + i * stride, &value, sizeof value);
                   }
               });
}

void wipe(std::span<std::byte> target) {
    // The complement of a value belongs to another place, so it is wrong here.
    for (std::byte& byte : target) byte = ~byte;
}

Index count_wrong(const Case& one, std::span<const std::byte> target) {
    Index wrong = 0;
    visit_runs(one.whole.steps.front().to, shape(one.problem.target),
               [&](Index place, Index memory, Index stride, Index elements) {
                   for (Index i = 0; i < elements; ++i) {
                       std::uint32_t value = 0;
                       std::memcpy(&value, target.data() + memory + i * stride, sizeof value);
                       wrong += value != value_at(place + i) ? 1 : 0;
                   }
               });
    return wrong;
}

Index target_elements(const Case& one) { return count(one.whole.steps.front().to.tile); }

}  // namespace reshard::bench
