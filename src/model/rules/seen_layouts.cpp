#include "src/model/rules/seen_layouts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reshard/planner/view.hpp"
#include "reshard/text.hpp"
#include "src/base/try.hpp"

namespace reshard::notation {

namespace {

// Takes the dimensions that only say who owns the tensor out of a layout. They have one index.
std::vector<Dim> take_homes(Layout& layout, std::span<const Index> shape) {
    std::vector<Dim> homes;
    std::vector<Dim> own;
    for (Dim& dim : layout.dims) {
        const bool is_own = own.size() < shape.size() && dim.extent == shape[own.size()];
        (is_own ? own : homes).push_back(std::move(dim));
    }
    layout.dims = std::move(own);
    return homes;
}

}  // namespace

DType moving_dtype(DType source, DType target) { return size_of(target) < size_of(source) ? target : source; }

SeenLayouts::Shared SeenLayouts::in_dtype(const Shared& layout, DType dtype) {
    if (layout->dtype == dtype) return layout;
    Shared& kept = in_dtype_[{layout, dtype}];
    if (!kept) {
        Layout made = *layout;
        made.dtype = dtype;
        kept = std::make_shared<const Layout>(std::move(made));
    }
    return kept;
}

Result<SeenLayouts::Shared> SeenLayouts::in_shape(std::string_view name, const MoveEnd& end,
                                                  const std::vector<Index>& shape) {
    Shared& kept = in_shape_[{end.layout, shape}];
    if (kept) return kept;
    Layout layout = *end.layout;
    std::vector<Dim> homes = take_homes(layout, end.shape);
    auto seen = reshard::in_shape(layout, shape);
    if (!seen)
        return fail(Code::unsupported, fmt::format("'{}' is {}, which is no layout in the shape ({})", name,
                                                   format(layout), fmt::join(shape, ",")));
    seen->dims.insert(seen->dims.begin(), homes.begin(), homes.end());
    kept = std::make_shared<const Layout>(*std::move(seen));
    return kept;
}

}  // namespace reshard::notation
