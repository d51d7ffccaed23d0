#include "array.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

namespace reshard::conformance {
namespace {

constexpr std::byte pattern{0xa5};

std::uint64_t mix(std::uint64_t x) {  // splitmix64
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

Index digits_value(const AtomList& atoms, Index device) {
    Index value = 0;
    for (const Atom& atom : atoms) value = value * atom.size + device / atom.stride % atom.size;
    return value;
}

// The device number with the digits of `atoms` set to `value`.
Index with_digits(const AtomList& atoms, Index device, Index value) {
    for (std::size_t i = atoms.size(); i-- > 0;) {
        device += (value % atoms[i].size - device / atoms[i].stride % atoms[i].size) * atoms[i].stride;
        value /= atoms[i].size;
    }
    return device;
}

Index combinations_of(const AtomList& atoms) {
    Index all = 1;
    for (const Atom& atom : atoms) all *= atom.size;
    return all;
}

Index positions(const Layout& layout) {
    Index all = 1;
    for (const Axis& axis : layout.mesh.axes) all *= axis.size;
    return all;
}

std::optional<Index> position_by_search(const Layout& layout, Index device) {
    const auto listed = layout.mesh.devices.devices();
    for (Index position = 0; position < positions(layout); ++position)
        if ((listed.empty() ? position : listed[static_cast<std::size_t>(position)]) == device) return position;
    return std::nullopt;
}

// Small enough that the sum of eight values is exact in every dtype.
Index small_value(Index element, Index summand, std::uint64_t salt) {
    return static_cast<Index>(mix(salt * 1000003 + static_cast<std::uint64_t>(element * 64 + summand)) % 4);
}

// A device's part of an element: a small whole number, or the identity of the reduction.
struct Number {
    Reduction reduction = Reduction::sum;
    std::optional<Index> value;  ///< empty: the identity of max or min
};

// Most factors of a product are 1 or 2.
Index summand_of(Reduction reduction, Index element, Index summand, std::uint64_t salt) {
    const Index small = small_value(element, summand, salt);
    if (reduction != Reduction::prod) return small;
    return small > 0 ? 1 + small % 2 : small_value(element, summand, salt + 1) % 2;
}

Index combined(Reduction reduction, Index a, Index b) {
    if (reduction == Reduction::max) return std::max(a, b);
    if (reduction == Reduction::min) return std::min(a, b);
    return reduction == Reduction::prod ? a * b : a + b;
}

// The shard that has an index.
Index owner_of(const Dim& dim, Index index) {
    for (const Dim::Piece& piece : dim.pieces)
        if (index < piece.end) return piece.shard;
    const Index shards = combinations_of(dim.atoms);
    if (dim.balanced) {
        Index end = 0;
        for (Index shard = 0;; ++shard)
            if (index < (end += dim.extent / shards + (shard < dim.extent % shards ? 1 : 0))) return shard;
    }
    return index / ((dim.extent + shards - 1) / shards);
}

// The summand of the layout that takes over the origin's `summand` at position `holder`.
Index summand_in(const Layout& layout, const Layout& origin, Index holder, Index summand) {
    const auto listed = [](const Layout& one) {
        const auto devices = one.mesh.devices.devices();
        return std::vector<Index>(devices.begin(), devices.end());
    };
    if (positions(layout) == positions(origin) && listed(layout) == listed(origin))
        return digits_value(layout.unreduced, holder);
    return combinations_of(layout.unreduced) == combinations_of(origin.unreduced) ? summand : 0;
}

// Every summand of every element has one home in the origin, a device chosen by its digits. All other devices hold the
// identity. A device of `layout` combines the summands with homes that the layout's summands do not tell apart from it.
// An avg over n summands holds n times its share.
Number reduced_value(Reduction reduction, const Layout& layout, const Layout& origin, Index position, Index element,
                     std::uint64_t salt) {
    Index home = 0;
    Index rest = element;
    for (std::size_t k = origin.dims.size(); k-- > 0;) {
        const Dim& dim = origin.dims[k];
        home = with_digits(dim.atoms, home, owner_of(dim, rest % dim.extent));
        rest /= dim.extent;
    }
    Number number{reduction, std::nullopt};
    for (Index summand = 0; summand < combinations_of(origin.unreduced); ++summand) {
        const Index holder = with_digits(origin.unreduced, home, summand);
        if (summand_in(layout, origin, holder, summand) != digits_value(layout.unreduced, position)) continue;
        const Index value = summand_of(reduction, element, summand, salt);
        number.value = number.value ? combined(reduction, *number.value, value) : value;
    }
    const bool ordered = reduction == Reduction::max || reduction == Reduction::min;
    if (!number.value && !ordered) number.value = reduction == Reduction::prod ? 1 : 0;
    if (reduction == Reduction::avg) *number.value *= combinations_of(layout.unreduced);
    return number;
}

template <class T>
void put(T value, std::byte* place) {
    std::memcpy(place, &value, sizeof value);
}

bool is_signed(DType dtype) {
    return dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32 || dtype == DType::i64;
}

// Writes the lowest element, or the highest.
void put_end(DType dtype, bool highest, std::byte* place) {
    const auto bytes = static_cast<std::size_t>(size_of(dtype));
    switch (dtype) {
        case DType::boolean:
            return put<std::uint8_t>(highest, place);
        case DType::f32:
            return put(highest ? 0x7f800000U : 0xff800000U, place);
        case DType::f64:
            return put(highest ? 0x7ff0000000000000U : 0xfff0000000000000U, place);
        case DType::bf16:
            return put<std::uint16_t>(highest ? 0x7f80U : 0xff80U, place);
        case DType::f16:
            return put<std::uint16_t>(highest ? 0x7c00U : 0xfc00U, place);
        default:
            std::memset(place, highest ? 0xff : 0, bytes);
            if (is_signed(dtype)) place[bytes - 1] ^= std::byte{0x80};
    }
}

void put_number(DType dtype, const Number& number, std::byte* place) {
    if (!number.value) return put_end(dtype, number.reduction == Reduction::min, place);
    const Index value = *number.value;
    const float turned = number.reduction == Reduction::prod ? 0.0F : -2.0F;  // imaginary parts add up by themselves
    const auto narrow = static_cast<float>(value);
    switch (dtype) {
        case DType::boolean:
            return put<std::uint8_t>(value > 0, place);
        case DType::f32:
            return put(narrow, place);
        case DType::f64:
            return put(static_cast<double>(value), place);
        case DType::bf16:
            return put(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(narrow) >> 16), place);
        case DType::f16: {
            // Exact for the small values used here: the exponent is rebiased, the mantissa cut.
            const auto bits = std::bit_cast<std::uint32_t>(narrow);
            return put(static_cast<std::uint16_t>(value == 0 ? 0 : (bits >> 13) - (112u << 10)), place);
        }
        case DType::c64:
            put(narrow, place);
            return put(turned * narrow + 0.0F, place + 4);
        case DType::c128:
            put(static_cast<double>(value), place);
            return put(static_cast<double>(turned) * static_cast<double>(value) + 0.0, place + 8);
        default:
            std::memcpy(place, &value, static_cast<std::size_t>(size_of(dtype)));  // little-endian integers
    }
}

void put_bytes(Index element_bytes, Index element, std::uint64_t salt, std::byte* place) {
    for (Index i = 0; i < element_bytes; i += 8) {
        const std::uint64_t word = mix(salt ^ mix(static_cast<std::uint64_t>(element * 2 + i / 8)));
        std::memcpy(place + i, &word, static_cast<std::size_t>(std::min<Index>(8, element_bytes - i)));
    }
}

Index elements_in(const Indices& tile) {
    Index all = 1;
    for (const auto& side : tile) all *= static_cast<Index>(side.size());
    return all;
}

// Calls visit(number in the array, place in the storage) for every element of the tile.
template <class Visit>
void visit_elements(const Layout& layout, const Indices& tile, const Storage& storage, const Visit& visit) {
    for (Index i = 0; i < elements_in(tile); ++i) {
        Index rest = i;
        Index element = 0;
        Index scale = 1;
        Index place = storage.offset;
        for (std::size_t k = tile.size(); k-- > 0;) {
            const auto indices = static_cast<Index>(tile[k].size());
            const Index within = rest % indices;
            rest /= indices;
            element += tile[k][static_cast<std::size_t>(within)] * scale;
            scale *= layout.dims[k].extent;
            place += within * storage.strides[k];
        }
        visit(element, place);
    }
}

}  // namespace

std::optional<Indices> tile_by_arithmetic(const Layout& layout, Index device) {
    const auto position = position_by_search(layout, device);
    if (!position) return std::nullopt;
    Indices tile;
    for (const Dim& dim : layout.dims) {
        tile.emplace_back();
        for (Index index = 0; index < dim.extent; ++index)
            if (owner_of(dim, index) == digits_value(dim.atoms, *position)) tile.back().push_back(index);
    }
    return tile;
}

Storage storage_of(Style style, const Indices& tile) {
    Storage storage{0, std::vector<Index>(tile.size(), 0)};
    const bool columns = style == Style::column_major || style == Style::column_padded;
    const bool padded = style == Style::padded || style == Style::column_padded;
    Index stride = style == Style::spaced ? 2 : 1;
    for (std::size_t i = 0; i < tile.size(); ++i) {
        const std::size_t k = columns ? i : tile.size() - 1 - i;
        storage.strides[k] = stride;
        stride *= static_cast<Index>(tile[k].size()) + (padded ? 3 : 0);
    }
    if (padded) storage.offset = 5;
    if (style == Style::shifted) storage.offset = 3;
    return storage;
}

Image blank_of(const Layout& layout, Index device, Style style) {
    const auto box = tile_by_arithmetic(layout, device);
    if (!box || elements_in(*box) == 0) return {};
    const Storage storage = storage_of(style, *box);
    Index last = 0;
    visit_elements(layout, *box, storage, [&](Index, Index place) { last = std::max(last, place); });
    return {std::vector<std::byte>(static_cast<std::size_t>((last + 1) * size_of(layout.dtype)), pattern)};
}

Image without_tile(Image image, const Layout& layout, Index device, Style style) {
    if (image.bytes.empty()) return image;
    const Indices box = *tile_by_arithmetic(layout, device);
    const Index element_bytes = size_of(layout.dtype);
    visit_elements(layout, box, storage_of(style, box), [&](Index, Index place) {
        std::fill_n(image.bytes.data() + place * element_bytes, element_bytes, pattern);
    });
    return image;
}

Image image_of(const Layout& layout, const Layout& origin, Index device, Style style, std::uint64_t salt,
               std::optional<Reduction> reduction) {
    Image image = blank_of(layout, device, style);
    if (image.bytes.empty()) return image;
    const Indices box = *tile_by_arithmetic(layout, device);
    const Index position = *position_by_search(layout, device);
    const Index element_bytes = size_of(layout.dtype);
    visit_elements(layout, box, storage_of(style, box), [&](Index element, Index place) {
        std::byte* to = image.bytes.data() + place * element_bytes;
        if (reduction) {
            put_number(layout.dtype, reduced_value(*reduction, layout, origin, position, element, salt), to);
        } else {
            put_bytes(element_bytes, element, salt, to);
        }
    });
    return image;
}

std::string difference(const Image& got, const Image& wanted) {
    if (got.bytes.size() != wanted.bytes.size()) {
        return fmt::format("{} bytes instead of {}", got.bytes.size(), wanted.bytes.size());
    }
    std::size_t wrong = 0;
    std::size_t first = 0;
    for (std::size_t i = got.bytes.size(); i-- > 0;) {
        if (got.bytes[i] == wanted.bytes[i]) continue;
        ++wrong;
        first = i;
    }
    if (wrong == 0) return {};
    return fmt::format("{} of {} bytes are wrong, the first is byte {}: {:#04x} instead of {:#04x}", wrong,
                       got.bytes.size(), first, static_cast<unsigned>(got.bytes[first]),
                       static_cast<unsigned>(wanted.bytes[first]));
}

}  // namespace reshard::conformance
