// Checks that boxes cover a tensor, and puts the files of ranks together.
#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "files/engine/stored_view.hpp"
#include "files/formats/json_text.hpp"
#include "files/formats/safetensors.hpp"
#include "files/formats/tile_boxes.hpp"
#include "src/base/try.hpp"
#include "src/model/rules/shared_blocks.hpp"

namespace reshard::files {

namespace {

bool meet(const Box& a, const Box& b) {
    for (std::size_t k = 0; k < a.size(); ++k)
        if (a[k].begin >= b[k].end || b[k].begin >= a[k].end) return false;
    return true;
}

// Sorts boxes by where they begin in a dimension.
void sort_along(std::size_t dim, std::span<const Box*> boxes) {
    std::ranges::sort(boxes, {}, [&](const Box* box) { return (*box)[dim].begin; });
}

// Returns the number of boxes before the first one that begins after all earlier ones have ended. pre: sorted along the
// dimension.
std::size_t first_run(std::size_t dim, std::span<const Box* const> boxes) {
    Index end = (*boxes[0])[dim].end;
    std::size_t count = 1;
    for (; count < boxes.size() && (*boxes[count])[dim].begin < end; ++count)
        end = std::max(end, (*boxes[count])[dim].end);
    return count;
}

// Compares boxes that no cut separates, until one begins after another has ended.
bool overlap_along(std::size_t dim, std::span<const Box*> boxes) {
    sort_along(dim, boxes);
    for (std::size_t i = 0; i < boxes.size(); ++i)
        for (std::size_t j = i + 1; j < boxes.size() && (*boxes[j])[dim].begin < (*boxes[i])[dim].end; ++j)
            if (meet(*boxes[i], *boxes[j])) return true;
    return false;
}

// True if two of the boxes have an element in common. Separates the boxes in one dimension after the other, so a grid
// costs one sort for each dimension.
bool overlap(std::span<const Box*> boxes, int cuts_left = 64) {
    if (boxes.size() < 2) return false;
    const std::size_t rank = boxes[0]->size();
    if (rank == 0) return true;
    std::size_t widest = 0;
    std::size_t most = 0;
    for (std::size_t dim = 0; dim < rank; ++dim) {
        sort_along(dim, boxes);
        if (cuts_left > 0 && first_run(dim, boxes) < boxes.size()) {
            for (std::size_t run = 0; !boxes.empty(); boxes = boxes.subspan(run)) {
                run = first_run(dim, boxes);
                if (overlap(boxes.first(run), cuts_left - 1)) return true;
            }
            return false;
        }
        std::size_t begins = 1;
        for (std::size_t i = 1; i < boxes.size(); ++i) begins += (*boxes[i])[dim].begin != (*boxes[i - 1])[dim].begin;
        if (begins > most) {
            most = begins;
            widest = dim;
        }
    }
    return overlap_along(widest, boxes);
}

}  // namespace

Coverage coverage(const StoredTensor& tensor) {
    std::vector<const Box*> boxes;
    for (const StoredBox& stored : tensor.boxes) boxes.push_back(&stored.box);
    if (overlap(boxes)) return {0, true};
    Index missing = 1;
    for (const Index extent : tensor.shape) missing = saturating_multiply(missing, extent);
    for (const Box* box : boxes) missing -= count(*box);
    return {missing, false};
}

Result<std::vector<ListedTensor>> list_of(const Checkpoint& checkpoint) {
    std::vector<ListedTensor> list;
    std::set<std::string> names;
    const auto step = static_cast<std::size_t>(std::max<Index>(checkpoint.ranks, 1));
    for (std::size_t i = 0; i < checkpoint.tensors.size(); i += step) {
        const StoredTensor& tensor = checkpoint.tensors[i];
        if (!names.insert(tensor.name).second)
            return fail(Code::mismatch, fmt::format("{} is there twice", in_quotes(tensor.name)));
        list.push_back({tensor.name, tensor.dtype, tensor.shape});
    }
    return list;
}

namespace {

// The reader uses the tool, or ConvertOptions from a program.
constexpr std::string_view no_list =
    "no list says the whole shapes of the tensors, and the tiles of the ranks do not: give one with --list "
    "(ConvertOptions::list), lines `name dtype[shape]`";

// Takes each index of a dimension once, if several ranks hold it.
void hold_once(StoredTensor& tensor, std::size_t dim, const notation::Stretches& held) {
    std::vector<StoredBox> boxes;
    for (const auto& [indices, begin] : notation::once_each(held))
        for (const StoredBox& stored : tensor.boxes) {
            const Interval& side = stored.box[dim];
            const Interval both = {std::max(side.begin, begin), std::min(side.end, begin + indices.size())};
            if (both.size() <= 0) continue;
            StoredBox& box = boxes.emplace_back(stored);
            box.offset += (both.begin - side.begin) * stored.strides[dim];
            box.box[dim] = {both.begin - begin + indices.begin, both.end - begin + indices.begin};
        }
    tensor.boxes = std::move(boxes);
    tensor.shape[dim] = held.back().indices.end;
}

class Joiner {
public:
    Joiner(Checkpoint& checkpoint, std::string_view rules) : checkpoint_(checkpoint), rules_(rules) {}

    Result<void> join(std::vector<ListedTensor> list) {
        listed_ = !list.empty();
        if (!listed_) {
            RESHARD_ASSIGN(list, added_up());
        }
        RESHARD_TRY(const auto& placed, place(list));
        std::unordered_map<std::string_view, std::size_t> by_name;
        for (std::size_t i = 0; i < list.size(); ++i) by_name.emplace(list[i].name, i);
        std::vector<StoredTensor> whole;
        for (std::size_t i = 0; i < checkpoint_.tensors.size(); i += ranks()) {
            const auto found = by_name.find(checkpoint_.tensors[i].name);
            if (found == by_name.end())
                return fail(Code::mismatch, fmt::format("the list has no {}", in_quotes(checkpoint_.tensors[i].name)));
            RESHARD_TRY(auto& made, put_together(i, list[found->second], placed[found->second]));
            whole.push_back(std::move(made));
        }
        if (whole.size() != list.size()) return fail(Code::mismatch, "the list has tensors that no rank has");
        checkpoint_.tensors = std::move(whole);
        checkpoint_.ranks = 0;
        return {};
    }

private:
    std::size_t ranks() const { return static_cast<std::size_t>(checkpoint_.ranks); }

    // If no list is given, the rules are matched with the shapes of tiles, and may not fit them.
    Result<std::vector<ShardedTensor>> place(const std::vector<ListedTensor>& list) {
        auto placed = place_sources(rules_, list);
        if (placed || listed_) return placed;
        if (placed.error().code == Code::layout || placed.error().code == Code::mismatch)
            placed.error().message += fmt::format("; {}", no_list);
        return placed;
    }

    static bool there(const StoredTensor& tensor) { return !tensor.shape.empty() || !tensor.boxes.empty(); }

    // Returns the list with the extents of all ranks' tiles together.
    Result<std::vector<ListedTensor>> added_up() {
        std::vector<ListedTensor> list;
        for (std::size_t i = 0; i < checkpoint_.tensors.size(); i += ranks()) {
            std::size_t first = i;
            while (first + 1 < i + ranks() && !there(checkpoint_.tensors[first])) ++first;
            const StoredTensor& tensor = checkpoint_.tensors[first];
            list.push_back({tensor.name, tensor.dtype, tensor.shape});
        }
        RESHARD_TRY(const auto& placed, place(list));
        for (std::size_t i = 0; i < list.size(); ++i) {
            const Layout& layout = *placed[i].layout;
            const auto real = real_dims(layout, list[i].shape);
            for (std::size_t k = 0; k < layout.dims.size(); ++k) {
                if (!real[k]) continue;
                std::map<Index, Index> extents;  // of the shards that ranks hold
                for (std::size_t rank = 0; rank < ranks(); ++rank) {
                    const StoredTensor& own = checkpoint_.tensors[i * ranks() + rank];
                    const auto position = position_of(layout.mesh, static_cast<Index>(rank));
                    if (!there(own) || !position || own.shape.size() != list[i].shape.size()) continue;
                    extents[value_of(layout.dims[k].atoms, *position)] = own.shape[*real[k]];
                }
                Index sum = 0;
                for (const auto& [shard, extent] : extents) sum = saturating_add(sum, extent);
                list[i].shape[*real[k]] = sum;
            }
        }
        return list;
    }

    Result<StoredTensor> put_together(std::size_t first, const ListedTensor& listed, const ShardedTensor& placed) {
        const Layout& layout = *placed.layout;
        const std::vector<Index> own_shape = held_shape(placed);
        StoredTensor whole{listed.name, listed.dtype, real_shape(layout, own_shape), {}, ""};
        const auto wrong = [&](std::size_t rank, std::string_view what) {
            return fail(Code::mismatch,
                        fmt::format("{} on rank {} {}; {}", in_quotes(listed.name), rank, what,
                                    listed_ ? "the rules or the list (--list) must say it otherwise" : no_list));
        };
        if (listed.dtype != checkpoint_.tensors[first].dtype) return wrong(0, "has another type than the list says");
        std::vector<Tile> taken;
        for (std::size_t rank = 0; rank < ranks(); ++rank) {
            const StoredTensor& own = checkpoint_.tensors[first + rank];
            const Tile held = real_tile(layout, own_shape, static_cast<Index>(rank));
            const bool nothing = count(held) == 0;
            if (!there(own)) {
                if (!nothing) return wrong(rank, "is not there");
                continue;
            }
            if (nothing ? !own.boxes.empty() : own.shape != extents(held))
                return wrong(rank, fmt::format("has the shape [{}], and the rules say [{}]", fmt::join(own.shape, ","),
                                               fmt::join(nothing ? std::vector<Index>{0} : extents(held), ",")));
            if (nothing || std::ranges::find(taken, held) != taken.end()) continue;
            const StoredBox& box = own.boxes.front();
            for (StoredBox& one : boxes_in_file(held, box.file, box.offset, size_of(listed.dtype)))
                whole.boxes.push_back(std::move(one));
            taken.push_back(held);
        }
        for (std::size_t k = 0; k < placed.held.size(); ++k)
            if (!placed.held[k].empty()) hold_once(whole, k, placed.held[k]);
        if (whole.shape != listed.shape) whole = in_view(whole, listed.shape);
        whole.type = checkpoint_.tensors[first].type;
        return whole;
    }

    Checkpoint& checkpoint_;
    std::string_view rules_;
    bool listed_ = false;
};

}  // namespace

Result<Checkpoint> joined(Checkpoint checkpoint, std::string_view rules, std::span<const ListedTensor> list) {
    if (checkpoint.ranks == 0) return checkpoint;
    RESHARD_CHECK(Joiner(checkpoint, rules).join({list.begin(), list.end()}));
    return checkpoint;
}

}  // namespace reshard::files
