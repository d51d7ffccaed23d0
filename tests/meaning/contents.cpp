#include "meaning/contents.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

namespace reshard::test {

namespace {

std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ (x >> 31)) * 0xBF58476D1CE4E5B9U + 0x9E3779B97F4A7C15U;
    x = (x ^ (x >> 29)) * 0x94D049BB133111EBU;
    return x ^ (x >> 32);
}

bool is_signed(DType dtype) {
    return dtype != DType::boolean && dtype != DType::u8 && dtype != DType::u16 && dtype != DType::u32 &&
           dtype != DType::u64;
}

template <class T>
void store(T value, std::byte* place) {
    std::memcpy(place, &value, sizeof value);
}

template <class T>
T load(const std::byte* place) {
    T value;
    std::memcpy(&value, place, sizeof value);
    return value;
}

constexpr Index not_whole = -999'999'999;

Index whole(double value) {
    if (std::isinf(value)) return value < 0 ? INT64_MIN : INT64_MAX;
    return std::isnan(value) || value != std::floor(value) ? not_whole : static_cast<Index>(value);
}

/// A half: ten bits of mantissa, five of exponent; exact for whole numbers below 2^11.
std::uint16_t half_of(Index value) {
    if (value == 0) return 0;
    int exponent = 0;
    const double mantissa = std::frexp(std::abs(static_cast<double>(value)), &exponent);  // [1/2, 1)
    const auto fraction = static_cast<unsigned>(mantissa * 2048) - 1024U;
    return static_cast<std::uint16_t>((value < 0 ? 0x8000U : 0U) | static_cast<unsigned>(exponent + 14) << 10 |
                                      fraction);
}

Index whole_of_half(std::uint16_t bits) {
    const unsigned exponent = bits >> 10 & 31U;
    const unsigned fraction = bits & 1023U;
    const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
    if (exponent == 31) return fraction != 0 ? not_whole : whole(sign * INFINITY);
    const double magnitude =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024.0 + fraction, static_cast<int>(exponent) - 25);
    return whole(sign * magnitude);
}

}  // namespace

Contents::Contents(const Draft& draft)
    : dtype_(draft.dtype),
      size_(size_of(draft.dtype)),
      elements_(elements_in_all(draft.source)),
      source_summands_(summands(draft.source)),
      target_summands_(summands(draft.target)),
      source_(draft.source.reduction),
      target_(draft.target.reduction) {}

Index Contents::value(Index element, Index summand) const {
    const std::uint64_t hash = mixed(static_cast<std::uint64_t>(element * 1009 + summand));
    const auto below = [&](Index bound) { return static_cast<Index>((hash >> 8) % static_cast<std::uint64_t>(bound)); };
    const bool turned = is_signed(dtype_);
    if (dtype_ == DType::boolean) return below(2);
    const Reduction reduction = source_summands_ > 1 ? source_ : target_;
    switch (reduction) {
        case Reduction::max:
        case Reduction::min:
            return below(50) - (turned ? 25 : 0);
        case Reduction::prod:  // at most 2^3
            return (summand < 3 ? 1 + below(2) : 1) * (turned && (hash & 1U) != 0 ? -1 : 1);
        case Reduction::avg:  // so that the mean of any summands is whole
            return source_summands_ * (below(3) - 1);
        case Reduction::sum:
            break;
    }
    return below(3) - (turned ? 1 : 0);
}

Index Contents::combined(Realm realm, Reduction reduction, Index a, Index b) const {
    const bool logical = realm == Realm::dtype && dtype_ == DType::boolean;
    switch (reduction) {
        case Reduction::max:
            return std::max(a, b);
        case Reduction::min:
            return std::min(a, b);
        case Reduction::prod:
            return a * b;
        case Reduction::sum:
        case Reduction::avg:
            break;
    }
    return logical ? std::max(a, b) : a + b;
}

/// The combination of the source's summands.
Index Contents::total(Realm realm, Index element) const {
    Index all = value(element, 0);
    for (Index summand = 1; summand < source_summands_; ++summand)
        all = combined(realm, source_, all, value(element, summand));
    const bool averaged = realm == Realm::dtype && source_summands_ > 1 && source_ == Reduction::avg;
    return averaged ? all / source_summands_ : all;
}

/// The value that the target's summands must combine to, before an avg is divided.
Index Contents::wanted(Realm realm, Index element) const {
    const bool averaged = realm == Realm::dtype && target_summands_ > 1 && target_ == Reduction::avg;
    return total(realm, element) * (averaged ? target_summands_ : 1);
}

void Contents::put(Index number, std::byte* place) const {
    const auto narrow = static_cast<float>(number);
    // Imaginary parts add up by themselves. If the reduction multiplies, they are 0.
    const bool multiplied =
        (source_summands_ > 1 && source_ == Reduction::prod) || (target_summands_ > 1 && target_ == Reduction::prod);
    switch (dtype_) {
        case DType::f16:
            return store(half_of(number), place);
        case DType::bf16:
            return store(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(narrow) >> 16), place);
        case DType::f32:
            return store(narrow, place);
        case DType::f64:
            return store(static_cast<double>(number), place);
        case DType::c64:
            store(narrow, place);
            return store(multiplied ? 0.0F : -2.0F * narrow, place + 4);
        case DType::c128:
            store(static_cast<double>(number), place);
            return store(multiplied ? 0.0 : -2.0 * static_cast<double>(number), place + 8);
        default:
            std::memcpy(place, &number, static_cast<std::size_t>(size_));  // little-endian
    }
}

Index Contents::get(const std::byte* place) const {
    const auto of_pair = [](double real, double imaginary) {
        return imaginary == 0 || imaginary == -2 * real ? whole(real) : not_whole;
    };
    switch (dtype_) {
        case DType::boolean:
        case DType::u8:
            return load<std::uint8_t>(place);
        case DType::u16:
            return load<std::uint16_t>(place);
        case DType::u32:
            return load<std::uint32_t>(place);
        case DType::u64:
            return static_cast<Index>(std::min<std::uint64_t>(load<std::uint64_t>(place), INT64_MAX));
        case DType::i8:
            return load<std::int8_t>(place);
        case DType::i16:
            return load<std::int16_t>(place);
        case DType::i32:
            return load<std::int32_t>(place);
        case DType::i64:
            return load<std::int64_t>(place);
        case DType::f16:
            return whole_of_half(load<std::uint16_t>(place));
        case DType::bf16:
            return whole(static_cast<double>(std::bit_cast<float>(std::uint32_t{load<std::uint16_t>(place)} << 16)));
        case DType::f32:
            return whole(static_cast<double>(load<float>(place)));
        case DType::f64:
            return whole(load<double>(place));
        case DType::c64:
            return of_pair(static_cast<double>(load<float>(place)), static_cast<double>(load<float>(place + 4)));
        case DType::c128:
            return of_pair(load<double>(place), load<double>(place + 8));
        case DType::f8_e4m3fn:
        case DType::f8_e5m2:
            break;
    }
    return not_whole;
}

std::vector<std::byte> Contents::bytes_of(const Holder& holder) const {
    const auto width = static_cast<std::size_t>(size_);
    std::vector<std::byte> bytes(holder.elements.size() * width);
    const bool any = source_summands_ == 1 && target_summands_ == 1;
    for (std::size_t i = 0; i < holder.elements.size(); ++i) {
        const Index element = holder.elements[i];
        if (!any) {
            put(value(element, holder.summand), &bytes[i * width]);
            continue;
        }
        for (std::size_t byte = 0; byte < width; ++byte)
            bytes[i * width + byte] = static_cast<std::byte>(mixed(static_cast<std::uint64_t>(element) * 16 + byte));
    }
    return bytes;
}

std::vector<std::int64_t> Contents::numbers_of(const Holder& holder) const {
    std::vector<std::int64_t> numbers;
    for (const Index element : holder.elements) numbers.push_back(value(element, holder.summand));
    return numbers;
}

std::string Contents::fault(const std::vector<Holder>& held, const std::vector<std::vector<std::byte>>& tiles) const {
    const auto width = static_cast<std::size_t>(size_);
    const bool any = source_summands_ == 1 && target_summands_ == 1;
    std::vector<std::vector<std::int64_t>> numbers(held.size());
    for (std::size_t device = 0; device < held.size(); ++device) {
        if (any && tiles[device] != bytes_of(held[device]))
            return fmt::format("the tile of device {} is wrong", device);
        for (std::size_t i = 0; !any && i < held[device].elements.size(); ++i)
            numbers[device].push_back(get(&tiles[device][i * width]));
    }
    return any ? "" : fault(Realm::dtype, held, numbers);
}

std::string Contents::fault(const std::vector<Holder>& held,
                            const std::vector<std::vector<std::int64_t>>& tiles) const {
    return fault(Realm::numbers, held, tiles);
}

std::string Contents::fault(Realm realm, const std::vector<Holder>& held,
                            const std::vector<std::vector<std::int64_t>>& tiles) const {
    const auto at = [&](Index summand, Index element) {
        return static_cast<std::size_t>(summand * elements_ + element);
    };
    std::vector<std::optional<Index>> known(static_cast<std::size_t>(elements_ * target_summands_));
    for (std::size_t device = 0; device < held.size(); ++device)
        for (std::size_t i = 0; i < held[device].elements.size(); ++i) {
            auto& one = known[at(held[device].summand, held[device].elements[i])];
            if (one && *one != tiles[device][i])
                return fmt::format("element {} of device {} is no replica", held[device].elements[i], device);
            one = tiles[device][i];
        }
    for (Index element = 0; element < elements_; ++element) {
        std::optional<Index> all;
        for (Index summand = 0; summand < target_summands_; ++summand) {
            const auto one = known[at(summand, element)];
            if (!one) return fmt::format("element {} has no summand {}", element, summand);
            all = all ? combined(realm, target_, *all, *one) : *one;
        }
        if (*all != wanted(realm, element))
            return fmt::format("element {} is {} instead of {}", element, *all, wanted(realm, element));
    }
    return "";
}

}  // namespace reshard::test
