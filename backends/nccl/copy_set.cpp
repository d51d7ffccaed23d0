#include "backends/nccl/copy_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace reshard::nccl {
namespace {

using Loop = LoopNest::Loop;

constexpr Index vector_bytes_max = 16;
constexpr Index tile_extent_min = 8;  // below, a tile would be mostly empty
constexpr Index blocks_max = (Index{1} << 31) - 1;

// A nest with addresses. Loops are ordered as in memory of the target, outermost first.
struct Nest {
    const std::byte* source;
    std::byte* target;
    Index element_bytes;
    std::vector<Loop> loops;
};

// Boxes by the kernel that runs them.
using Boxes = std::map<Kernel, std::vector<std::pair<DeviceBox, Index>>>;  // with how many blocks they need

Index element_count(const Nest& nest) {
    Index all = 1;
    for (const Loop& loop : nest.loops) all *= loop.extent;
    return all;
}

Nest part_of(const Nest& nest, std::size_t loop, Index begin, Index end) {
    Nest part = nest;
    part.source += begin * part.loops[loop].source_stride;
    part.target += begin * part.loops[loop].target_stride;
    part.loops[loop].extent = end - begin;
    if (end - begin == 1) part.loops.erase(part.loops.begin() + static_cast<std::ptrdiff_t>(loop));
    return part;
}

// The bits that any address, stride or extent of an access must leave zero for it to be a whole vector.
Index address_bits(const Nest& nest) {
    return static_cast<Index>(reinterpret_cast<std::uintptr_t>(nest.source) |
                              reinterpret_cast<std::uintptr_t>(nest.target));
}

Index stride_bits(std::span<const Loop> loops) {
    Index bits = 0;
    for (const Loop& loop : loops) bits |= loop.source_stride | loop.target_stride;
    return bits;
}

Index width_of(Index bits) {
    Index width = vector_bytes_max;
    while ((bits & (width - 1)) != 0) width /= 2;
    return width;
}

bool runs(const Nest& nest) {
    return !nest.loops.empty() && nest.loops.back().source_stride == nest.element_bytes &&
           nest.loops.back().target_stride == nest.element_bytes;
}

DeviceBox box_with(const Nest& nest, std::span<const Loop> loops) {
    DeviceBox box{};
    box.source = reinterpret_cast<const unsigned char*>(nest.source);
    box.target = reinterpret_cast<unsigned char*>(nest.target);
    for (const Loop& loop : loops) {
        box.loops[box.loop_count++] = {divisor(static_cast<std::uint32_t>(loop.extent)), loop.source_stride,
                                       loop.target_stride};
    }
    return box;
}

// Loops over vectors instead of elements. `least` bounds the width from below: that of an element which is added.
struct Rows {
    Index width;
    std::vector<Loop> loops;
};

Rows rows_of(const Nest& nest) {
    std::vector<Loop> loops = nest.loops;
    Index run = nest.element_bytes;
    if (runs(nest)) {
        run *= loops.back().extent;
        loops.pop_back();
    }
    const Index width = width_of(run | address_bits(nest) | stride_bits(loops));
    if (run > width) loops.push_back({run / width, width, width});
    return {width, std::move(loops)};
}

void emit_rows(const Nest& nest, Rows rows, Kernel kernel, Boxes& boxes) {
    DeviceBox box = box_with(nest, rows.loops);
    Index units = 1;
    for (const Loop& loop : rows.loops) units *= loop.extent;
    box.units = static_cast<std::uint32_t>(units);
    boxes[kernel].emplace_back(box, (units + units_block - 1) / units_block);
}

Kernel row_kernel(Index width, bool fills) {
    switch (width) {
        case 1:
            return fills ? Kernel::fill_1 : Kernel::copy_1;
        case 2:
            return fills ? Kernel::fill_2 : Kernel::copy_2;
        case 4:
            return fills ? Kernel::fill_4 : Kernel::copy_4;
        case 8:
            return fills ? Kernel::fill_8 : Kernel::copy_8;
        default:
            return fills ? Kernel::fill_16 : Kernel::copy_16;
    }
}

// Source and target run along different loops: the last one in the target, `columns` in the source.
struct Turn {
    std::size_t columns;
    std::size_t rows;
};

std::optional<Turn> turn_of(const Nest& nest) {
    if (nest.loops.size() < 2 || runs(nest) || nest.loops.back().target_stride != nest.element_bytes) return {};
    const std::size_t rows = nest.loops.size() - 1;
    if (nest.loops[rows].extent < tile_extent_min) return {};
    for (std::size_t k = 0; k < rows; ++k) {
        const Loop& loop = nest.loops[k];
        if (loop.source_stride == nest.element_bytes && loop.extent >= tile_extent_min) return Turn{k, rows};
    }
    return {};
}

void emit_tiles(const Nest& nest, const Turn& turn, Index pack, Boxes& boxes) {
    std::vector<Loop> planes;
    Index units = 1;
    for (std::size_t k = 0; k < turn.rows; ++k) {
        if (k == turn.columns) continue;
        planes.push_back(nest.loops[k]);
        units *= nest.loops[k].extent;
    }
    const Loop& columns = nest.loops[turn.columns];
    const Loop& rows = nest.loops[turn.rows];
    DeviceBox box = box_with(nest, planes);
    const Index side = tile_words * pack;
    const Index across = (columns.extent + side - 1) / side;
    const Index down = (rows.extent + side - 1) / side;
    box.tiles_across = divisor(static_cast<std::uint32_t>(across));
    box.tiles_down = divisor(static_cast<std::uint32_t>(down));
    box.columns = static_cast<std::uint32_t>(columns.extent);
    box.rows = static_cast<std::uint32_t>(rows.extent);
    box.row_stride = rows.source_stride;
    box.column_stride = columns.target_stride;
    units *= across * down;
    box.units = static_cast<std::uint32_t>(units);
    const bool packed = pack > 1;
    const Kernel kernel = nest.element_bytes == 1   ? (packed ? Kernel::turn_1_packed : Kernel::turn_1)
                          : nest.element_bytes == 2 ? (packed ? Kernel::turn_2_packed : Kernel::turn_2)
                          : nest.element_bytes == 4 ? Kernel::turn_4
                          : nest.element_bytes == 8 ? Kernel::turn_8
                                                    : Kernel::turn_16;
    boxes[kernel].emplace_back(box, units);
}

// Elements that pack into one word of a tile, when all that is reached by whole words is aligned to them.
Index pack_of(const Nest& nest, const Turn& turn) {
    constexpr Index word = 4;
    if (nest.element_bytes >= word) return 1;
    std::vector<Loop> reached = nest.loops;
    reached[turn.columns].source_stride = 0;  // walked in words
    reached[turn.rows].target_stride = 0;
    return width_of(address_bits(nest) | stride_bits(reached)) >= word ? word / nest.element_bytes : 1;
}

void emit_copy(const Nest& nest, Boxes& boxes);

// Cuts what does not fill whole words off the end of a loop. True when there was something.
bool cut_rest(const Nest& nest, std::size_t loop, Index pack, Boxes& boxes) {
    const Index extent = nest.loops[loop].extent;
    const Index whole = extent / pack * pack;
    if (whole == extent) return false;
    emit_copy(part_of(nest, loop, 0, whole), boxes);
    emit_copy(part_of(nest, loop, whole, extent), boxes);
    return true;
}

void emit_copy(const Nest& nest, Boxes& boxes) {
    const auto turn = turn_of(nest);
    const bool aligned = width_of(address_bits(nest)) >= nest.element_bytes;
    if (!turn || !aligned) {
        Rows rows = rows_of(nest);
        const Kernel kernel = row_kernel(rows.width, false);
        return emit_rows(nest, std::move(rows), kernel, boxes);
    }
    const Index pack = pack_of(nest, *turn);
    if (cut_rest(nest, turn->columns, pack, boxes) || cut_rest(nest, turn->rows, pack, boxes)) return;
    emit_tiles(nest, *turn, pack, boxes);
}

// A complex number is its two parts.
struct Sum {
    Kernel narrow;
    Kernel wide;
    Index parts;
};

Sum sum_of(DType dtype) {
    switch (dtype) {
        case DType::boolean:
            return {Kernel::add_boolean, Kernel::add_boolean_wide, 1};
        case DType::i16:
        case DType::u16:
            return {Kernel::add_i16, Kernel::add_i16_wide, 1};
        case DType::i32:
        case DType::u32:
            return {Kernel::add_i32, Kernel::add_i32_wide, 1};
        case DType::i64:
        case DType::u64:
            return {Kernel::add_i64, Kernel::add_i64_wide, 1};
        case DType::f16:
            return {Kernel::add_f16, Kernel::add_f16_wide, 1};
        case DType::bf16:
            return {Kernel::add_bf16, Kernel::add_bf16_wide, 1};
        case DType::f32:
            return {Kernel::add_f32, Kernel::add_f32_wide, 1};
        case DType::f64:
            return {Kernel::add_f64, Kernel::add_f64_wide, 1};
        case DType::c64:
            return {Kernel::add_f32, Kernel::add_f32_wide, 2};
        case DType::c128:
            return {Kernel::add_f64, Kernel::add_f64_wide, 2};
        case DType::i8:
        case DType::u8:
        case DType::f8_e4m3fn:  // bytes only; the precondition keeps them out
        case DType::f8_e5m2:
            break;
    }
    return {Kernel::add_i8, Kernel::add_i8_wide, 1};
}

Result<void> emit_sum(Nest nest, const Sum& sum, Boxes& boxes) {
    if (sum.parts > 1) {
        nest.element_bytes /= sum.parts;
        const bool dense = !nest.loops.empty() && nest.loops.back().source_stride == 2 * nest.element_bytes &&
                           nest.loops.back().target_stride == 2 * nest.element_bytes;
        const Index extent = dense ? nest.loops.back().extent * sum.parts : sum.parts;
        if (dense) nest.loops.pop_back();
        nest.loops.push_back({extent, nest.element_bytes, nest.element_bytes});
    }
    if (width_of(address_bits(nest)) < nest.element_bytes) {
        return fail(
            Code::mismatch,
            fmt::format("elements of {} bytes are added at an address that is no multiple of it", nest.element_bytes));
    }
    Rows rows = rows_of(nest);
    if (rows.width == vector_bytes_max) {
        emit_rows(nest, std::move(rows), sum.wide, boxes);
    } else {
        emit_rows(nest, {nest.element_bytes, nest.loops}, sum.narrow, boxes);
    }
    return {};
}

// Parts that a kernel can count and walk, each given to `emit`.
template <class Emit>
Result<void> in_parts(const Nest& nest, const Emit& emit) {
    if (nest.loops.size() + 1 > static_cast<std::size_t>(loops_max)) {  // one loop is left for the vectors of a run
        for (Index i = 0; i < nest.loops.front().extent; ++i) {
            if (auto done = in_parts(part_of(nest, 0, i, i + 1), emit); !done) return done;
        }
        return {};
    }
    // Vectors may be as narrow as a byte.
    if (element_count(nest) < Index{units_max} / nest.element_bytes) return emit(nest);
    const Index half = nest.loops.front().extent / 2;
    if (auto done = in_parts(part_of(nest, 0, 0, half), emit); !done) return done;
    return in_parts(part_of(nest, 0, half, nest.loops.front().extent), emit);
}

void append_launches(const Boxes& boxes, Placed& placed) {
    for (const auto& [kernel, ones] : boxes) {
        Index blocks = 0;
        std::size_t first = placed.table.size();
        const auto close = [&] {
            const std::size_t count = placed.table.size() - first;
            placed.launches.push_back(
                {kernel, first, static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(blocks)});
            first = placed.table.size();
            blocks = 0;
        };
        for (const auto& [box, needed] : ones) {
            if (blocks + needed > blocks_max) close();
            placed.table.push_back(box);
            placed.table.back().first_block = static_cast<std::uint64_t>(blocks);
            blocks += needed;
        }
        close();
    }
}

}  // namespace

Where where_of(Place place) {
    switch (place) {
        case Place::source:
            return Where::source;
        case Place::target:
            return Where::target;
        case Place::workspace:
            break;
    }
    return Where::workspace;
}

void CopySet::append(Entry entry) {
    if (!entry.nest.empty) entries_.push_back(std::move(entry));
}

void CopySet::copy(Where from, const Region& source, Where to, const Region& target) {
    append({Kind::copy, DType::u8, from, to, loop_nest(source, target)});
}

void CopySet::fill(Where to, const Region& target) {
    append({Kind::fill, DType::u8, to, to, loop_nest(target, target)});
}

void CopySet::add(DType dtype, Where from, const Region& source, Where to, const Region& target) {
    append({Kind::add, dtype, from, to, loop_nest(source, target)});
}

Result<void> CopySet::place(const Bases& bases, Placed& placed) const {
    Boxes boxes;
    for (const Entry& entry : entries_) {
        const Nest whole{base_of(bases, entry.from) + entry.nest.source_offset,
                         base_of(bases, entry.to) + entry.nest.target_offset, entry.nest.element_bytes,
                         entry.nest.loops};
        const auto done = in_parts(whole, [&](const Nest& nest) -> Result<void> {
            if (entry.kind == Kind::add) return emit_sum(nest, sum_of(entry.dtype), boxes);
            if (entry.kind == Kind::copy) {
                emit_copy(nest, boxes);
                return {};
            }
            Rows rows = rows_of(nest);
            const Kernel kernel = row_kernel(rows.width, true);
            emit_rows(nest, std::move(rows), kernel, boxes);
            return {};
        });
        if (!done) return done;
    }
    append_launches(boxes, placed);
    return {};
}

}  // namespace reshard::nccl
