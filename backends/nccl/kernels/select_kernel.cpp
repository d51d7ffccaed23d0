#include "backends/nccl/kernels/select_kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>

#include "src/base/try.hpp"

namespace reshard::nccl {
namespace {

using Loop = LoopNest::Loop;

constexpr Index vector_bytes_max = 16;
constexpr Index tile_extent_min = 8;  // in smaller extents, a tile would be mostly empty

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

// The bits that are set in addresses, and below in strides. An access can be a whole vector only if its low bits are
// zero in all addresses, strides and extents.
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

// Loops over vectors instead of elements.
struct Rows {
    Index width;
    std::vector<Loop> loops;
};

// The additional fields of a fill, a fold, a scale or a cast.
struct Extra {
    Fold fold = Fold::sum;
    Scale scale = {};
    Pattern pattern{};
    ElementId from = ElementId::u8;
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

void emit_rows(const Nest& nest, std::span<const Loop> loops, Kernel kernel, Boxes& boxes, const Extra& extra = {}) {
    DeviceBox box = box_with(nest, loops);
    box.fold = extra.fold;
    box.times = extra.scale.times;
    box.over = extra.scale.over;
    box.from = extra.from;
    std::memcpy(box.pattern, extra.pattern.data(), sizeof box.pattern);
    Index units = 1;
    for (const Loop& loop : loops) units *= loop.extent;
    box.units = static_cast<std::uint32_t>(units);
    boxes[kernel].emplace_back(box, (units + units_block - 1) / units_block);
}

Kernel row_kernel(Index width, bool fills) {
    constexpr std::array copies = {Kernel::copy_1, Kernel::copy_2, Kernel::copy_4, Kernel::copy_8, Kernel::copy_16};
    constexpr std::array fills_of = {Kernel::fill_1, Kernel::fill_2, Kernel::fill_4, Kernel::fill_8, Kernel::fill_16};
    const auto power = static_cast<std::size_t>(std::countr_zero(static_cast<std::uint64_t>(width)));
    return fills ? fills_of[power] : copies[power];
}

// The loops of a plane, whose source and target run along different loops. The target runs along the last loop, the
// source along `columns`.
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

// The number of elements in one word of a tile. Words are packed only if every access by whole words is aligned.
Index pack_of(const Nest& nest, const Turn& turn) {
    constexpr Index word = 4;
    if (nest.element_bytes >= word) return 1;
    std::vector<Loop> reached = nest.loops;
    reached[turn.columns].source_stride = 0;  // walked in words
    reached[turn.rows].target_stride = 0;
    return width_of(address_bits(nest) | stride_bits(reached)) >= word ? word / nest.element_bytes : 1;
}

void emit_one_copy(const Nest& nest, Boxes& boxes);

// Cuts the part that fills no whole words off the end of a loop. Returns true if it cut.
bool cut_rest(const Nest& nest, std::size_t loop, Index pack, Boxes& boxes) {
    const Index extent = nest.loops[loop].extent;
    const Index whole = extent / pack * pack;
    if (whole == extent) return false;
    emit_one_copy(part_of(nest, loop, 0, whole), boxes);
    emit_one_copy(part_of(nest, loop, whole, extent), boxes);
    return true;
}

void emit_one_copy(const Nest& nest, Boxes& boxes) {
    const auto turn = turn_of(nest);
    const bool aligned = width_of(address_bits(nest)) >= nest.element_bytes;
    if (!turn || !aligned) {
        const Rows rows = rows_of(nest);
        return emit_rows(nest, rows.loops, row_kernel(rows.width, false), boxes);
    }
    const Index pack = pack_of(nest, *turn);
    if (cut_rest(nest, turn->columns, pack, boxes) || cut_rest(nest, turn->rows, pack, boxes)) return;
    emit_tiles(nest, *turn, pack, boxes);
}

// The two kernels of an element type.
struct TypeKernels {
    Kernel narrow;
    Kernel wide;
};

TypeKernels fold_kernels(DType dtype) {
    switch (dtype) {
#define X(name, ...)  \
    case DType::name: \
        return {Kernel::fold_##name, Kernel::fold_##name##_wide};
#define BYTES(name, ...) \
    case DType::name:    \
        break;  // the precondition excludes these
        RESHARD_DTYPES(X, BYTES)
#undef BYTES
#undef X
    }
    return {Kernel::fold_u8, Kernel::fold_u8_wide};
}

// A cast of one nest. Elements of the nest are `nest.element_bytes` long at the source.
struct Cast {
    ElementId from;
    Index to_bytes;
    TypeKernels kernels;
    Index pack;  // elements that the wide kernel casts at once
};

Cast cast_between(DType from, DType to) {
    const auto made = [&](Kernel narrow, Kernel wide, Index pack) {
        return Cast{static_cast<ElementId>(from), size_of(to), {narrow, wide}, pack};
    };
    switch (to) {
#define X(name, Element, ...) \
    case DType::name:         \
        return made(Kernel::cast_##name, Kernel::cast_##name##_wide, cast_pack<Element>);
        RESHARD_DTYPES(X, X)
#undef X
    }
    __builtin_unreachable();
}

// True if the elements of the last loop lie side by side, and each group of them begins where a whole vector may.
bool casts_wide(const Nest& nest, const Cast& cast) {
    if (nest.loops.empty() || nest.loops.back().extent < cast.pack) return false;
    const Loop& run = nest.loops.back();
    if (run.source_stride != nest.element_bytes || run.target_stride != cast.to_bytes) return false;
    auto source_bits = static_cast<Index>(reinterpret_cast<std::uintptr_t>(nest.source));
    auto target_bits = static_cast<Index>(reinterpret_cast<std::uintptr_t>(nest.target));
    for (const Loop& loop : std::span(nest.loops).first(nest.loops.size() - 1)) {
        source_bits |= loop.source_stride;
        target_bits |= loop.target_stride;
    }
    const auto fits = [&](Index bits, Index element) {
        return width_of(bits) >= std::min(vector_bytes_max, cast.pack * element);
    };
    return fits(source_bits, nest.element_bytes) && fits(target_bits, cast.to_bytes);
}

void emit_one_cast(const Nest& nest, const Cast& cast, Boxes& boxes) {
    const Extra extra{.from = cast.from};
    if (!casts_wide(nest, cast)) return emit_rows(nest, nest.loops, cast.kernels.narrow, boxes, extra);
    const std::size_t last = nest.loops.size() - 1;
    const Index extent = nest.loops[last].extent;
    const Index whole = extent / cast.pack * cast.pack;
    if (whole < extent) {
        emit_one_cast(part_of(nest, last, 0, whole), cast, boxes);
        return emit_one_cast(part_of(nest, last, whole, extent), cast, boxes);
    }
    std::vector<Loop> loops = nest.loops;
    loops[last] = {extent / cast.pack, cast.pack * nest.element_bytes, cast.pack * cast.to_bytes};
    emit_rows(nest, loops, cast.kernels.wide, boxes, extra);
}

// Fails unless both addresses are multiples of their elements. Complex numbers are aligned as their parts.
Result<void> need_aligned(const Nest& nest, Index source_bytes, Index target_bytes, std::string_view what) {
    constexpr Index alignment_max = 8;
    for (const auto& [address, bytes] : {std::pair(reinterpret_cast<std::uintptr_t>(nest.source), source_bytes),
                                         std::pair(reinterpret_cast<std::uintptr_t>(nest.target), target_bytes)}) {
        if (width_of(static_cast<Index>(address)) < std::min(bytes, alignment_max))
            return fail(Code::mismatch,
                        fmt::format("elements of {} bytes {} at an address that is no multiple of it", bytes, what));
    }
    return {};
}

// The same loops, with an access of `width` bytes that begins `bytes` further on.
Nest shifted(const Nest& nest, Index bytes, Index width) {
    Nest part = nest;
    part.target += bytes;
    part.element_bytes = width;
    return part;
}

// Calls `emit` for each part that a kernel can count and walk.
template <class Emit>
Result<void> in_parts(const Nest& nest, const Emit& emit) {
    if (nest.loops.size() + 1 > static_cast<std::size_t>(loops_max)) {  // one more loop serves the vectors of a run
        for (Index i = 0; i < nest.loops.front().extent; ++i) {
            RESHARD_CHECK(in_parts(part_of(nest, 0, i, i + 1), emit));
        }
        return {};
    }
    // A vector may be as narrow as a byte.
    if (element_count(nest) < Index{units_max} / nest.element_bytes) return emit(nest);
    const Index half = nest.loops.front().extent / 2;
    RESHARD_CHECK(in_parts(part_of(nest, 0, 0, half), emit));
    return in_parts(part_of(nest, 0, half, nest.loops.front().extent), emit);
}

// The pattern repeated, from `shift` bytes into an element on.
Pattern repeated(const Pattern& pattern, Index element_bytes, Index shift) {
    Pattern whole{};
    for (std::size_t i = 0; i < whole.size(); ++i) {
        whole[i] = pattern[(i + static_cast<std::size_t>(shift)) % static_cast<std::size_t>(element_bytes)];
    }
    return whole;
}

}  // namespace

void emit_copy(const Nest& nest, Boxes& boxes) {
    static_cast<void>(in_parts(nest, [&](const Nest& part) -> Result<void> {
        emit_one_copy(part, boxes);
        return {};
    }));
}

// If accesses are narrower than an element, each part of the element has a box and a pattern of its own.
void emit_fill(const Nest& nest, const Pattern& pattern, Boxes& boxes) {
    static_cast<void>(in_parts(nest, [&](const Nest& part) -> Result<void> {
        const Index element = part.element_bytes;
        const Index width = rows_of(part).width;
        if (width >= element) {
            emit_rows(part, rows_of(part).loops, row_kernel(width, true), boxes,
                      {.pattern = repeated(pattern, element, 0)});
            return {};
        }
        for (Index begin = 0; begin < element; begin += width) {
            const Nest one = shifted(part, begin, width);
            emit_rows(one, one.loops, row_kernel(width, true), boxes, {.pattern = repeated(pattern, element, begin)});
        }
        return {};
    }));
}

Result<void> emit_cast(const Nest& nest, DType from, DType to, Boxes& boxes) {
    const Cast cast = cast_between(from, to);
    RESHARD_CHECK(need_aligned(nest, nest.element_bytes, cast.to_bytes, "are cast"));
    return in_parts(nest, [&](const Nest& part) -> Result<void> {
        emit_one_cast(part, cast, boxes);
        return {};
    });
}

Result<void> emit_fold(const Nest& nest, DType dtype, Fold fold, Scale scale, Boxes& boxes) {
    RESHARD_CHECK(need_aligned(nest, nest.element_bytes, nest.element_bytes, "combine"));
    const TypeKernels kernels = fold_kernels(dtype);
    return in_parts(nest, [&](const Nest& part) -> Result<void> {
        const Rows rows = rows_of(part);
        const bool wide = rows.width == vector_bytes_max;
        emit_rows(part, wide ? rows.loops : part.loops, wide ? kernels.wide : kernels.narrow, boxes,
                  {.fold = fold, .scale = scale});
        return {};
    });
}

}  // namespace reshard::nccl
