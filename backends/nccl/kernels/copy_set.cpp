#include "backends/nccl/kernels/copy_set.hpp"
#include "src/base/try.hpp"

namespace reshard::nccl {
namespace {

constexpr Index blocks_max = (Index{1} << 31) - 1;

// Indexed by Combine. A copy has no fold, and the precondition excludes it.
constexpr std::array folds = {Fold::sum, Fold::sum, Fold::max, Fold::min, Fold::prod};
static_assert(folds[static_cast<std::size_t>(Combine::sum)] == Fold::sum &&
              folds[static_cast<std::size_t>(Combine::max)] == Fold::max &&
              folds[static_cast<std::size_t>(Combine::min)] == Fold::min &&
              folds[static_cast<std::size_t>(Combine::prod)] == Fold::prod);

void append_launches(const Boxes& boxes, Placed& placed) {
    for (const auto& entry : boxes) {
        const Kernel kernel = entry.first;
        Index blocks = 0;
        std::size_t first = placed.table.size();
        const auto close = [&] {
            const std::size_t count = placed.table.size() - first;
            placed.launches.push_back(
                {kernel, first, static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(blocks)});
            first = placed.table.size();
            blocks = 0;
        };
        for (const auto& [box, needed] : entry.second) {
            if (blocks + needed > blocks_max) close();
            placed.table.push_back(box);
            placed.table.back().first_block = static_cast<std::uint64_t>(blocks);
            blocks += needed;
        }
        close();
    }
}

}  // namespace

void CopySet::append(Entry entry) {
    if (!entry.nest.empty) entries_.push_back(std::move(entry));
}

void CopySet::copy(BufferId from, const Region& source, BufferId to, const Region& target) {
    append({.kind = Kind::copy, .dtype = DType::u8, .from = from, .to = to, .nest = loop_nest(source, target)});
}

void CopySet::cast(DType from_dtype, DType to_dtype, BufferId from, const Region& source, BufferId to,
                   const Region& target) {
    if (from_dtype == to_dtype) return copy(from, source, to, target);
    append({.kind = Kind::cast,
            .dtype = from_dtype,
            .from = from,
            .to = to,
            .nest = loops_of(source, target),
            .to_dtype = to_dtype});
}

void CopySet::fill(BufferId to, const Region& target, const Pattern& pattern) {
    append({.kind = Kind::fill,
            .dtype = DType::u8,
            .from = to,
            .to = to,
            .nest = loop_nest(target, target),
            .pattern = pattern});
}

void CopySet::combine(DType dtype, Combine combine, BufferId from, const Region& source, BufferId to,
                      const Region& target) {
    append({.kind = Kind::fold,
            .dtype = dtype,
            .from = from,
            .to = to,
            .nest = loop_nest(source, target),
            .fold = folds[static_cast<std::size_t>(combine)]});
}

void CopySet::scale(DType dtype, Scale scale, BufferId to, const Region& target) {
    append({.kind = Kind::fold,
            .dtype = dtype,
            .from = to,
            .to = to,
            .nest = loop_nest(target, target),
            .fold = Fold::scale,
            .scale = scale});
}

Result<void> CopySet::place(const Bases& bases, Placed& placed) const {
    Boxes boxes;
    for (const Entry& entry : entries_) {
        const Nest nest{base_of(bases, entry.from) + entry.nest.source_offset,
                        base_of(bases, entry.to) + entry.nest.target_offset, entry.nest.element_bytes,
                        entry.nest.loops};
        switch (entry.kind) {
            case Kind::copy:
                emit_copy(nest, boxes);
                break;
            case Kind::cast:
                RESHARD_CHECK(emit_cast(nest, entry.dtype, entry.to_dtype, boxes));
                break;
            case Kind::fill:
                emit_fill(nest, entry.pattern, boxes);
                break;
            case Kind::fold:
                RESHARD_CHECK(emit_fold(nest, entry.dtype, entry.fold, entry.scale, boxes));
                break;
        }
    }
    append_launches(boxes, placed);
    return {};
}

}  // namespace reshard::nccl
