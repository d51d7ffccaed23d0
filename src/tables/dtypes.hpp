// The table of element types, and lookups in it.
#pragma once

#include <algorithm>

#include "reshard/layout.hpp"
#include "src/tables/dtypes.def"

namespace reshard::tables {

/// The sort of number that an element is.
enum class Kind { boolean, signed_integer, unsigned_integer, floating, complex };

/// All facts about an element type. dtypes.def explains the columns. A name that is missing is "".
struct DTypeRow {
    DType dtype;
    bool combines;  ///< false for the types that only move
    std::string_view name;
    std::string_view long_name;
    Kind kind;
    Index bytes;
    int mantissa;  ///< explicit bits; 0 if the type is not floating
    std::string_view numpy;
    std::uint8_t dlpack;
    std::string_view safetensors;
    std::string_view zarr;
    std::string_view stablehlo;
};

/// A row for each element type; row(dtype) is dtypes[dtype].
inline constexpr std::array dtypes = {
#define X(dtype, Element, mpi, nccl, name, long_name, kind, ...) \
    DTypeRow{DType::dtype, true, name, long_name, Kind::kind, __VA_ARGS__},
#define BYTES(dtype, Element, mpi, nccl, name, long_name, kind, ...) \
    DTypeRow{DType::dtype, false, name, long_name, Kind::kind, __VA_ARGS__},
    RESHARD_DTYPES(X, BYTES)
#undef BYTES
#undef X
};

/// The row of an element type.
[[nodiscard]] constexpr const DTypeRow& row(DType dtype) { return dtypes[static_cast<std::size_t>(dtype)]; }

/// The element type whose column holds `text`. Empty text names no type.
[[nodiscard]] constexpr std::optional<DType> find_dtype(std::string_view DTypeRow::*column, std::string_view text) {
    for (const DTypeRow& one : dtypes)
        if (one.*column == text && !text.empty()) return one.dtype;
    return std::nullopt;
}

// The enum and the table list the same types in the same order. An enumerator that has no row is an error of -Wswitch.
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wswitch"
[[nodiscard]] constexpr bool has_row(DType dtype) {
    switch (dtype) {
#define X(name, ...)  \
    case DType::name: \
        return row(DType::name).dtype == DType::name;
        RESHARD_DTYPES(X, X)
#undef X
    }
    return false;
}
#pragma GCC diagnostic pop
static_assert(std::ranges::all_of(dtypes, [](const DTypeRow& one) { return has_row(one.dtype); }),
              "dtypes.def lists the types in the order of the enum DType");

/// True if every value of `narrow` is a value of `wide`. Both are floats, or both are integers. False for other types.
[[nodiscard]] constexpr bool holds_all(DType wide, DType narrow) {
    const DTypeRow& large = row(wide);
    const DTypeRow& small = row(narrow);
    if (large.kind == Kind::floating && small.kind == Kind::floating) {
        const Index large_exponent = 8 * large.bytes - large.mantissa;
        const Index small_exponent = 8 * small.bytes - small.mantissa;
        return large.mantissa >= small.mantissa && large_exponent >= small_exponent;
    }
    const auto is_integer = [](Kind kind) { return kind == Kind::signed_integer || kind == Kind::unsigned_integer; };
    if (!is_integer(large.kind) || !is_integer(small.kind)) return false;
    if (large.kind == small.kind) return large.bytes >= small.bytes;
    return large.kind == Kind::signed_integer && large.bytes > small.bytes;
}

/// True if a move may cast `from` to `to`, which differ: any two floats, or an integer and a type that holds all of its
/// values.
[[nodiscard]] constexpr bool can_cast(DType from, DType to) {
    const bool floats = row(from).kind == Kind::floating && row(to).kind == Kind::floating;
    return from != to && (floats || holds_all(to, from));
}

}  // namespace reshard::tables
