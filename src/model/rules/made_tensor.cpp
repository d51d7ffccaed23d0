#include "src/model/rules/made_tensor.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "src/base/try.hpp"
#include "src/model/rules/nearest_name.hpp"
#include "src/tables/dtypes.hpp"

namespace reshard::notation {

namespace {

class ShapeMaker {
public:
    ShapeMaker(const Made& made, const Rule& rule, std::string_view name, std::span<const ListedTensor> tensors)
        : made_(made),
          rule_(rule),
          name_(name),
          tensors_(tensors),
          parts_(std::max<std::size_t>(rule.parts.size(), 1)) {}

    Result<Asked> make() {
        for (std::size_t i = 0; i < made_.parts.size(); ++i)
            if (!made_.parts[i])
                return rule_.line.error(
                    Code::mismatch,
                    fmt::format("'{}' lacks '{}'{}", name_, missing(i), nearest_name(missing(i), tensors_)),
                    rule_.parts[i % parts_].offset);
        const Taken& first = *made_.parts.front();
        Asked asked{rule_.cast.value_or(dtype_of(first)), first.shape, rule_.along, {}, nullptr};
        if ((parts_ > 1 || rule_.groups > 1) && rule_.along >= first.shape.size())
            return rule_.line.error(Code::mismatch, "the parts have no such dimension", rule_.offset);
        for (std::size_t i = 0; i < made_.parts.size(); ++i) RESHARD_CHECK(fits(i, asked));
        for (std::size_t i = 0; i < parts_ && parts_ > 1; ++i)
            asked.parts.push_back(made_.parts[i]->shape[rule_.along]);
        if (parts_ > 1) {
            Index sum = 0;
            for (const Index part : asked.parts) sum = saturating_add(sum, part);
            asked.shape[rule_.along] = sum;
        }
        if (rule_.cut_whole) asked.parts.clear();
        if (const auto stack = rule_.stack_dim()) {
            if (*stack > asked.shape.size())
                return rule_.line.error(Code::mismatch, "the stack has no such dimension", rule_.offset);
            asked.shape.insert(asked.shape.begin() + static_cast<std::ptrdiff_t>(*stack), rule_.stack_numbers.size());
            ++asked.along;
        }
        return asked;
    }

private:
    [[nodiscard]] DType dtype_of(const Taken& part) const { return tensors_[part.tensor].dtype; }

    [[nodiscard]] tl::unexpected<Error> wrong(const Taken& part, std::string_view what) const {
        return rule_.line.error(Code::mismatch,
                                fmt::format("'{}' {} the first part of '{}'", tensors_[part.tensor].name, what, name_),
                                rule_.offset);
    }

    [[nodiscard]] Result<void> fits(std::size_t i, const Asked& asked) const {
        const Taken& part = *made_.parts[i];
        RESHARD_CHECK(fits_dtype(part, asked.dtype));
        // All places of a stack have the same parts as the first one.
        std::vector<Index> same = made_.parts[i % parts_]->shape;
        if (i < parts_) {
            same = made_.parts.front()->shape;
            if (parts_ > 1 && part.shape.size() == same.size()) same[rule_.along] = part.shape[rule_.along];
        }
        if (part.shape != same) return wrong(part, "has another shape than");
        if (rule_.groups > 1 && part.shape[rule_.along] % rule_.groups != 0)
            return rule_.line.error(Code::mismatch,
                                    fmt::format("'{}' has {} indices, which {} groups do not divide",
                                                tensors_[part.tensor].name, part.shape[rule_.along], rule_.groups),
                                    rule_.offset);
        return {};
    }

    [[nodiscard]] Result<void> fits_dtype(const Taken& part, DType wanted) const {
        const DType dtype = dtype_of(part);
        if (dtype == wanted || (rule_.cast && tables::can_cast(dtype, wanted))) return {};
        if (!rule_.cast) return wrong(part, "has another element type than");
        return rule_.line.error(
            Code::unsupported,
            fmt::format("'{}' is {}, which cannot be cast to {}; a cast is from a floating type to "
                        "another, or from an integer to a wider one ('{}')",
                        tensors_[part.tensor].name, reshard::name(dtype), reshard::name(wanted), name_),
            rule_.cast_offset);
    }

    // Returns the name of a missing tensor that would be a part.
    [[nodiscard]] std::string missing(std::size_t place) const {
        Bindings names = made_.names;
        const std::string number = std::to_string(rule_.stack_numbers.begin + static_cast<Index>(place / parts_));
        names.push_back({rule_.stack, number});
        return rule_.parts[place % parts_].pattern.written(names);
    }

    const Made& made_;
    const Rule& rule_;
    std::string_view name_;
    std::span<const ListedTensor> tensors_;
    std::size_t parts_;
};

}  // namespace

Result<Asked> made_shape(const Made& made, const Rule& rule, std::string_view name,
                         std::span<const ListedTensor> tensors) {
    return ShapeMaker(made, rule, name, tensors).make();
}

PartsOfDims parts_with_blocks(const Made& made, const Rule& rule) {
    PartsOfDims parts = made.dim_parts;
    if (rule.parts.size() < 2) return parts;
    const std::size_t along = rule.along + (rule.stack_dim() ? 1 : 0);
    parts.resize(std::max(parts.size(), along + 1));
    if (!parts[along].empty()) return parts;
    parts[along] = made.extents;
    for (std::size_t i = 0; i < rule.parts.size() && made.extents.empty(); ++i)
        parts[along].push_back(made.parts[i]->shape[rule.along]);
    return parts;
}

}  // namespace reshard::notation
