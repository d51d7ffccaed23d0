#include "files/passes.hpp"

#include <stdlib.h>  // mkdtemp

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "files/base/file.hpp"
#include "files/formats/json_text.hpp"
#include "files/formats/safetensors.hpp"
#include "files/formats/zarr_elements.hpp"
#include "src/base/odometer.hpp"
#include "src/base/try.hpp"

namespace reshard::files {

namespace {

Index product(std::span<const Index> sides) {
    Index all = 1;
    for (const Index side : sides) all = saturating_multiply(all, side);
    return all;
}

// Returns the sides of a block of at most `room` elements that follow each other in files. `step`: a stored box. Grows
// the box along the innermost dimensions, or cuts it along the outermost.
std::vector<Index> sides_within(std::span<const Index> shape, const StoredBox& step, Index room) {
    std::vector<Index> sides;
    for (std::size_t k = 0; k < shape.size(); ++k) sides.push_back(std::min(step.box[k].size(), shape[k]));
    std::vector<std::size_t> inner(shape.size());  // dimensions, the innermost first
    std::iota(inner.rbegin(), inner.rend(), std::size_t{0});
    std::ranges::stable_sort(inner, {}, [&](std::size_t k) { return step.strides[k]; });
    for (std::size_t i = inner.size(); i-- > 0 && product(sides) > room;) {
        Index& side = sides[inner[i]];
        side = std::max<Index>(room / std::max<Index>(product(sides) / side, 1), 1);
    }
    for (const std::size_t k : inner) {
        const Index times = std::max<Index>(room / product(sides), 1);
        const Index grown = std::min(saturating_multiply(sides[k], times), shape[k]);
        if (sides[k] < step.box[k].size() && sides[k] < shape[k]) break;  // the box was cut here
        sides[k] = grown;
        if (grown < shape[k]) break;
    }
    return sides;
}

// Elements that follow each other where a block meets a chunk in C order.
Index run_of(std::span<const Index> chunk, std::span<const Index> block) {
    Index run = 1;
    for (std::size_t k = chunk.size(); k-- > 0;) {
        run = saturating_multiply(run, std::min(chunk[k], block[k]));
        if (block[k] < chunk[k]) break;
    }
    return run;
}

bool copies_whole(const Job& job) {
    if (job.source.tensors.size() != 1 || job.target.what.tensors.size() != 1 || job.moves.size() != 1) return false;
    const StoredTensor& source = job.source.tensors[0];
    const StoredTensor& target = job.target.what.tensors[0];
    const bool whole = source.shape == target.shape && job.moves[0].from == whole_box(source.shape) &&
                       job.moves[0].to == whole_box(target.shape);
    const bool held =
        !zarr_type(target.dtype, target.type).is_null() && !zarr_type(source.dtype, source.type).is_null();
    return held && is_plain_name(source.name + ".zarr") && whole && !source.boxes.empty() && !target.boxes.empty() &&
           !source.shape.empty();
}

}  // namespace

std::optional<Passes> two_passes(const Job& job, Index capacity) {
    if (!copies_whole(job)) return std::nullopt;
    const StoredTensor& source = job.source.tensors[0];
    const StoredTensor& target = job.target.what.tensors[0];
    const Index room = capacity / std::max(size_of(source.dtype), size_of(target.dtype));
    Passes passes;
    passes.first = sides_within(source.shape, source.boxes.front(), room);
    passes.second = sides_within(target.shape, target.boxes.front(), room);
    if (job.target.compressed() && product(target.shape) > room)
        for (std::size_t k = 0; k < passes.second.size(); ++k)
            if (passes.second[k] < std::min(job.target.grain[k], target.shape[k])) return std::nullopt;
    const bool as_second = run_of(passes.second, passes.first) >= run_of(passes.first, passes.second);
    passes.chunks = as_second ? passes.second : passes.first;
    return passes;
}

std::vector<Batch> grid_batches(const Job& job, std::span<const Index> sides) {
    const std::vector<Index>& shape = job.target.what.tensors[0].shape;
    std::vector<Index> counts;
    for (std::size_t k = 0; k < shape.size(); ++k) counts.push_back(ceil_divide(shape[k], sides[k]));
    std::vector<Batch> batches;
    (void)for_each_place(counts, [&](const std::vector<Index>& place) -> Result<void> {
        Block block{0, {}};
        for (std::size_t k = 0; k < shape.size(); ++k)
            block.box.push_back({place[k] * sides[k], std::min((place[k] + 1) * sides[k], shape[k])});
        batches.push_back({std::move(block)});
        return {};
    });
    return batches;
}

namespace {

constexpr std::string_view scratch_prefix = "reshard-scratch-";
constexpr const char* scratch_lock = "made-by-reshard";

// Removes the folders of killed processes. A folder without the locked file is not known to be one.
void remove_left(const OpenFolder& in) {
    const auto names = in.names();
    if (!names) return;
    for (const std::string& name : *names) {
        if (!name.starts_with(scratch_prefix)) continue;
        const auto folder = in.folder(name);
        if (!folder || !folder->is_own() || !folder->has_own_file(scratch_lock)) continue;
        const auto lock = folder->locked(scratch_lock);
        if (lock) (void)in.remove(name);
    }
}

}  // namespace

Result<ScratchFolder> ScratchFolder::make(const std::string& in) {
    if (const auto beside = OpenFolder::parent_of(in + "/")) remove_left(*beside);
    constexpr int tries_max = 8;  // another run may take the folder for one that was left, until it is locked
    for (int tries = 1;; ++tries) {
        std::string path = fmt::format("{}/{}XXXXXX", in, scratch_prefix);
        if (::mkdtemp(path.data()) == nullptr) return cannot("make a folder in", in);
        RESHARD_TRY(const auto& made, OpenFolder::parent_of(path + "/"));
        auto lock = made.locked(scratch_lock);
        if (lock) return ScratchFolder(std::move(path), *std::move(lock));
        if (tries == tries_max) return tl::unexpected(std::move(lock.error()));
    }
}

ScratchFolder::ScratchFolder(ScratchFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}

void ScratchFolder::remove() {
    if (path_.empty()) return;
    const auto beside = OpenFolder::parent_of(path_);
    if (beside) (void)beside->remove(path_.substr(path_.rfind('/') + 1));
    path_.clear();
}

}  // namespace reshard::files
