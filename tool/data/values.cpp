#include "tool/data/values.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "src/copy/box_runs.hpp"
#include "tool/data/exact_values.hpp"

namespace reshard::cli {
namespace {

template <std::size_t width>
void hash_run(std::uint64_t first, std::size_t elements, std::byte* into) {
    for (std::size_t i = 0; i < elements; ++i, into += width) {
        const std::uint64_t low = mixed(first + i);
        std::memcpy(into, &low, std::min<std::size_t>(width, 8));
        if constexpr (width == 16) {
            const std::uint64_t high = mixed(~(first + i));
            std::memcpy(into + 8, &high, 8);
        }
    }
}

// All bits of all elements are random, so every bit is moved and compared, whatever number it would be.
class Hashed final : public Values {
public:
    Hashed(DType dtype, Box whole, std::uint64_t first) : dtype_(dtype), whole_(std::move(whole)), first_(first) {}

    Result<void> part(const Box& box, Index, std::span<std::byte> into) override { return total(box, into); }

    Result<void> total(const Box& box, std::span<std::byte> into) override {
        return for_each_run(whole_, box, [&](Index number, Index at, Index elements) -> Result<void> {
            fill(first_ + static_cast<std::uint64_t>(number), unsigned_of(elements),
                 &into[unsigned_of(at * size_of(dtype_))]);
            return {};
        });
    }

private:
    void fill(std::uint64_t first, std::size_t elements, std::byte* into) const {
        if (dtype_ == DType::boolean) {
            for (std::size_t i = 0; i < elements; ++i) into[i] = std::byte(mixed(first + i) & 1);
            return;
        }
        constexpr std::array runs = {hash_run<1>, hash_run<2>, hash_run<4>, hash_run<8>, hash_run<16>};
        runs[std::countr_zero(static_cast<std::uint64_t>(size_of(dtype_)))](first, elements, into);
    }

    DType dtype_;
    Box whole_;
    std::uint64_t first_;  // number of the array's first element
};

// Numbers so small that the combination of all summands is exact.
class Reducible final : public Values {
public:
    Reducible(DType dtype, Box whole, Index summands, Reduction reduction, Index divisor, std::uint64_t first)
        : dtype_(dtype),
          whole_(std::move(whole)),
          first_(first),
          summands_(summands),
          reduction_(reduction),
          divisor_(divisor),
          largest_(std::min<Index>(7, exact_max(dtype) / summands)) {}

    Result<void> part(const Box& box, Index summand, std::span<std::byte> into) override {
        return each(box, into, [&](std::uint64_t index) { return value(index, summand); });
    }

    Result<void> total(const Box& box, std::span<std::byte> into) override {
        return each(box, into, [&](std::uint64_t index) {
            Index all = value(index, 0);
            for (Index summand = 1; summand < summands_; ++summand) all = combined(all, value(index, summand));
            return all / divisor_;
        });
    }

private:
    [[nodiscard]] Index combined(Index a, Index b) const {
        if (reduction_ == Reduction::max) return std::max(a, b);
        if (reduction_ == Reduction::min) return std::min(a, b);
        return reduction_ == Reduction::prod ? a * b : a + b;
    }

    [[nodiscard]] Index value(std::uint64_t index, Index summand) const {
        const auto count = static_cast<std::uint64_t>(summands_);
        const std::uint64_t hash = mixed(index * count + static_cast<std::uint64_t>(summand));
        const bool home = mixed(index) % count == static_cast<std::uint64_t>(summand);
        const auto below = [&](Index bound) { return static_cast<Index>(hash % static_cast<std::uint64_t>(bound)); };
        switch (reduction_) {
            case Reduction::max:
            case Reduction::min:
                return below(std::min<Index>(exact_max(dtype_), 100) + 1);
            case Reduction::prod:  // at most 2^4; of bool, seldom false
                if (dtype_ == DType::boolean) return below(8) > 0 ? 1 : 0;
                return summand < 4 ? 1 + below(2) : 1;
            case Reduction::avg:  // one summand holds a multiple of the divisor, the rest hold 0
                return home ? divisor_ * below(largest_ + 1) : 0;
            case Reduction::sum:
                break;
        }
        // If the dtype cannot add so many summands, one of them holds 1 and the rest hold 0.
        if (largest_ == 0) return home ? 1 : 0;
        return below(largest_ + 1);
    }

    template <class Value>
    Result<void> each(const Box& box, std::span<std::byte> into, Value value) {
        const std::size_t size = unsigned_of(size_of(dtype_));
        return for_each_run(whole_, box, [&](Index number, Index at, Index elements) -> Result<void> {
            for (Index i = 0; i < elements; ++i) {
                const auto index = first_ + static_cast<std::uint64_t>(number + i);
                const auto element = into.subspan(unsigned_of(at + i) * size, size);
                encode(dtype_, value(index), element);
                // Both parts of a complex number are equal, and add up separately. For products the imaginary part is
                // 0.
                if (reduction_ == Reduction::prod && is_complex(dtype_))
                    std::ranges::fill(element.subspan(size / 2), std::byte{0});
            }
            return {};
        });
    }

    DType dtype_;
    Box whole_;
    std::uint64_t first_;
    Index summands_;
    Reduction reduction_;
    Index divisor_;
    Index largest_;
};

class Filed final : public Values {
public:
    Filed(ArrayFile file, Reduction reduction) : file_(std::move(file)), reduction_(reduction) {}

    Result<void> part(const Box& box, Index summand, std::span<std::byte> into) override {
        const bool idempotent = reduction_ == Reduction::max || reduction_ == Reduction::min;
        if (summand == 0 || idempotent) return total(box, into);
        const Pattern pattern = identity_of(file_.dtype(), combine_of(reduction_));
        const std::size_t width = unsigned_of(size_of(file_.dtype()));
        for (std::size_t at = 0; at < into.size(); at += width) std::memcpy(&into[at], pattern.data(), width);
        if (reduction_ == Reduction::sum) mark_negative_zero(into);
        return {};
    }

    Result<void> total(const Box& box, std::span<std::byte> into) override { return file_.read(box, into); }

private:
    // x + 0 is not x when x is -0, but x + -0 always is: the other summands of floats are -0.
    void mark_negative_zero(std::span<std::byte> into) const {
        const DType dtype = file_.dtype();
        if (!is_floating(dtype) && !is_complex(dtype)) return;
        const std::size_t width = unsigned_of(size_of(dtype)) / (is_complex(dtype) ? 2 : 1);
        for (std::size_t end = width; end <= into.size(); end += width) into[end - 1] = std::byte{0x80};
    }

    ArrayFile file_;
    Reduction reduction_;
};

}  // namespace

std::unique_ptr<Values> generated(const Layout& source, bool reduced, std::uint64_t array) {
    const std::uint64_t first = array << 40;
    if (!reduced) return std::make_unique<Hashed>(source.dtype, files::whole_box(shape(source)), first);
    const Reduction reduction = source.unreduced.empty() ? Reduction::sum : source.reduction;
    return std::make_unique<Reducible>(source.dtype, files::whole_box(shape(source)), summand_count(source), reduction,
                                       divisor(source), first);
}

std::unique_ptr<Values> from_file(ArrayFile file, Reduction reduction) {
    return std::make_unique<Filed>(std::move(file), reduction);
}

}  // namespace reshard::cli
