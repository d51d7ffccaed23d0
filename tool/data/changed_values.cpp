#include "tool/data/changed_values.hpp"

#include "src/base/try.hpp"
#include "src/copy/copy.hpp"

namespace reshard::cli {
namespace {

// The same order for boxes whose dimensions are listed backwards.
std::vector<Index> backwards(const std::vector<Index>& order) {
    std::vector<Index> made;
    for (auto dim = order.rbegin(); dim != order.rend(); ++dim) made.push_back(std::ssize(order) - 1 - *dim);
    return made;
}

class Changed final : public Values {
public:
    Changed(Values& values, ValuesChange change) : values_(values), change_(std::move(change)) {
        if (!change_.fortran_order) return;
        change_.permute = backwards(change_.permute);
        std::ranges::reverse(change_.extents);
    }

    Result<void> part(const Box& box, Index summand, std::span<std::byte> into) override {
        return values_.part(box, summand, into);
    }

    Result<void> total(const Box& box, std::span<std::byte> into) override {
        const Region dense = packed_region(box, size_of(change_.to));
        if (!change_.fill) return change(box, dense, into);
        Box source;
        for (const Index extent : change_.extents) source.push_back({0, extent});
        const Box common = intersect(box, source);
        for (std::size_t at = 0; at < into.size(); at += change_.fill->size())
            std::ranges::copy(*change_.fill, into.begin() + static_cast<std::ptrdiff_t>(at));
        return count(common) == 0 ? Result<void>() : change(common, within(dense, box, common), into);
    }

private:
    // Writes the elements of the box to a region of `into`.
    Result<void> change(const Box& box, const Region& target, std::span<std::byte> into) {
        Box before = box;
        for (std::size_t i = 0; i < change_.permute.size(); ++i) before[dim(i)] = box[i];
        const Index size = size_of(change_.from);
        read_.resize(static_cast<std::size_t>(count(box) * size));
        RESHARD_CHECK(values_.total(before, read_));
        const Region dense = packed_region(before, size);
        Region source = dense;
        for (std::size_t i = 0; i < change_.permute.size(); ++i) {
            source.extents[i] = dense.extents[dim(i)];
            source.strides_bytes[i] = dense.strides_bytes[dim(i)];
        }
        BoxCopy(source, target, cast_of(change_.from, change_.to)).run(read_.data(), into.data());
        return {};
    }

    [[nodiscard]] std::size_t dim(std::size_t i) const { return static_cast<std::size_t>(change_.permute[i]); }

    Values& values_;
    ValuesChange change_;
    std::vector<std::byte> read_;
};

}  // namespace

std::unique_ptr<Values> changed(Values& values, ValuesChange change) {
    return std::make_unique<Changed>(values, std::move(change));
}

}  // namespace reshard::cli
