#include "src/emit/order.hpp"

#include <algorithm>

namespace reshard {

Order merged(Order order) {
    Order all;
    for (const Digit& digit : order) {
        if (digit.size == 1) continue;
        if (!all.empty() && all.back().dim == digit.dim && all.back().stride == digit.size * digit.stride) {
            all.back().size *= digit.size;
            all.back().stride = digit.stride;
        } else {
            all.push_back(digit);
        }
    }
    return all;
}

Order row_major(const std::vector<Index>& extents) {
    Order order;
    for (std::size_t dim = 0; dim < extents.size(); ++dim)
        if (extents[dim] != 1) order.push_back({dim, extents[dim], 1});
    return order;
}

Order transposed(const std::vector<Index>& extents, std::span<const Index> permute) {
    if (permute.empty()) return row_major(extents);
    Order order(extents.size());
    for (std::size_t i = 0; i < extents.size(); ++i) order[static_cast<std::size_t>(permute[i])] = {i, extents[i], 1};
    return merged(std::move(order));
}

std::optional<Order> reshaped(const Order& order, const std::vector<Index>& from, const std::vector<Index>& to) {
    const auto below = [](const std::vector<Index>& extents) {  // elements of one index of each dimension
        std::vector<Index> strides(extents.size(), 1);
        for (std::size_t i = extents.size(); i-- > 1;) strides[i - 1] = strides[i] * extents[i];
        return strides;
    };
    const std::vector<Index> before = below(from);
    const std::vector<Index> after = below(to);
    Order made;
    for (const Digit& digit : order) made.push_back({0, digit.size, digit.stride * before[digit.dim]});
    for (const Index border : after)
        if (!cut(made, 0, border)) return std::nullopt;
    for (Digit& digit : made) {
        while (digit.stride < after[digit.dim]) ++digit.dim;
        digit.stride /= after[digit.dim];
    }
    return merged(std::move(made));
}

std::vector<Index> sizes_of(const Order& order) {
    std::vector<Index> sizes;
    for (const Digit& digit : order) sizes.push_back(digit.size);
    return sizes;
}

Index elements_of(const Order& order) {
    Index elements = 1;
    for (const Digit& digit : order) elements *= digit.size;
    return elements;
}

Index elements_of(const std::vector<Index>& extents) {
    Index elements = 1;
    for (const Index extent : extents) elements *= extent;
    return elements;
}

bool cut(Order& order, std::size_t dim, Index border) {
    for (std::size_t i = 0; i < order.size(); ++i) {
        const Digit digit = order[i];
        if (digit.dim != dim || border <= digit.stride || digit.size * digit.stride <= border) continue;
        if (border % digit.stride != 0 || digit.size * digit.stride % border != 0) return false;
        order[i] = {dim, digit.size * digit.stride / border, border};
        order.insert(order.begin() + static_cast<std::ptrdiff_t>(i) + 1, {dim, border / digit.stride, digit.stride});
        return true;
    }
    return true;
}

bool cut(Order& order, const Digit& digit) {
    return cut(order, digit.dim, digit.stride) && cut(order, digit.dim, digit.stride * digit.size);
}

std::optional<Order> cut_out(const Order& order, const Order& digits) {
    Order made = merged(order);
    for (const Digit& digit : digits)
        if (!cut(made, digit)) return std::nullopt;
    const auto is_there = [&](const Digit& digit) { return std::ranges::find(made, digit) != made.end(); };
    return std::ranges::all_of(digits, is_there) ? std::optional(made) : std::nullopt;
}

namespace {

// Keeps only the most minor digit of a dimension, which becomes all indices below `border`.
void make_whole(Order& order, std::size_t dim, Index border) {
    const auto minor = std::ranges::find_if(order, [&](const Digit& d) { return d.dim == dim && d.stride == 1; });
    if (minor == order.end()) return;
    *minor = {dim, border, 0};
    std::erase_if(order, [&](const Digit& digit) { return digit.dim == dim && digit.stride != 0; });
    std::ranges::find(order, dim, &Digit::dim)->stride = 1;
}

}  // namespace

Order without(const Order& order, const Order& taken) {
    Order left = order;
    for (const Digit& digit : taken) {
        Index border = digit.stride;  // of the most minor digit that is taken from this dimension
        for (const Digit& other : taken)
            if (other.dim == digit.dim) border = std::min(border, other.stride);
        if (!cut(left, digit.dim, border)) make_whole(left, digit.dim, border);
        std::erase_if(left, [&](const Digit& one) { return one.dim == digit.dim && one.stride >= border; });
    }
    return merged(std::move(left));
}

bool Transposition::moves() const { return !std::ranges::is_sorted(permutation); }

std::optional<Transposition> transposition(const Order& from, const Order& to) {
    Order before = from;
    Order after = to;
    const auto cut_like = [](Order& order, const Order& other) {
        for (const Digit& digit : other)
            if (!cut(order, digit)) return false;
        return true;
    };
    if (!cut_like(before, to) || !cut_like(after, before)) return std::nullopt;
    std::erase_if(before, [](const Digit& digit) { return digit.size == 1; });
    std::erase_if(after, [](const Digit& digit) { return digit.size == 1; });
    Transposition made;
    std::vector<std::size_t> axis(before.size());  // for each digit before; digits that stay neighbours are one axis
    for (std::size_t i = 0; i < before.size(); ++i) {
        const auto place = std::ranges::find(after, before[i]);
        const bool follows = i > 0 && place != after.begin() && *(place - 1) == before[i - 1];
        if (follows)
            made.sizes.back() *= before[i].size;
        else
            made.sizes.push_back(before[i].size);
        axis[i] = made.sizes.size() - 1;
    }
    for (const Digit& digit : after) {
        const std::size_t own = axis[static_cast<std::size_t>(std::ranges::find(before, digit) - before.begin())];
        if (made.permutation.empty() || made.permutation.back() != own) made.permutation.push_back(own);
    }
    return made;
}

}  // namespace reshard
