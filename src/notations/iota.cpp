#include "src/notations/iota.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "src/base/try.hpp"

namespace reshard::notation {

Result<std::vector<Index>> scan_list(Scanner& scanner, char open, char close, std::string_view what, Index least) {
    RESHARD_CHECK(scanner.expect(open));
    RESHARD_TRY(auto& list, scan_numbers(scanner, what, least));
    RESHARD_CHECK(scanner.expect(close));
    return std::move(list);
}

Result<void> scan_iota(Scanner& scanner, std::vector<Index>& shape, std::vector<Index>& order) {
    RESHARD_ASSIGN(shape, scan_list(scanner, '[', ']', "an axis", 1));
    order.clear();
    const std::size_t begin = scanner.place();
    if (!scanner.take('T')) {
        if (shape.size() > 1) return scanner.error(Code::syntax, "expected T(...), the order of the axes", begin);
        return {};
    }
    RESHARD_TRY(auto& axes, scan_list(scanner, '(', ')', "the number of an axis", 0));
    std::vector<Index> sorted = axes;
    std::ranges::sort(sorted);
    bool permutes = sorted.size() == shape.size();
    for (std::size_t i = 0; permutes && i < sorted.size(); ++i) permutes = sorted[i] == static_cast<Index>(i);
    if (!permutes)
        return scanner.error(Code::layout, fmt::format("T is no permutation of {} axes", shape.size()), begin);
    if (shape.size() > 1) order = std::move(axes);
    return {};
}

std::vector<Atom> iota_atoms(const std::vector<Index>& shape, const std::vector<Index>& order) {
    std::vector<Atom> axes(shape.size());
    Index stride = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
        axes[i] = {shape[i], stride};
        stride = saturating_multiply(stride, shape[i]);
    }
    if (order.empty()) return axes;
    std::vector<Atom> ordered;
    for (const Index axis : order) ordered.push_back(axes[static_cast<std::size_t>(axis)]);
    return ordered;
}

std::optional<std::vector<Index>> iota_devices(const std::vector<Index>& shape, const std::vector<Index>& order,
                                               Index count) {
    Index product = 1;
    for (const Index size : shape) product = saturating_multiply(product, size);
    if (product != count) return std::nullopt;
    const std::vector<Atom> axes = iota_atoms(shape, order);
    std::vector<Index> devices;
    for (Index position = 0; position < count; ++position) devices.push_back(with_value(axes, 0, position));
    return devices;
}

}  // namespace reshard::notation
