// Algorithms over ranges that the standard library of Debian's emscripten (libc++ 13) lacks. The build for the browser
// includes this file before all else, and no other build does. Each algorithm calls its older form.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
#include <ranges>
#include <utility>
#include <vector>

_LIBCPP_BEGIN_NAMESPACE_STD
namespace ranges {

// A predicate or comparison of projected elements.
template <class Function, class Projection>
constexpr auto projected(Function& function, Projection& projection) {
    return [&](auto&&... values) -> bool {
        return std::invoke(function, std::invoke(projection, std::forward<decltype(values)>(values))...);
    };
}

// The same for elements of two ranges, each with its own projection.
template <class Function, class First, class Second>
constexpr auto projected(Function& function, First& first, Second& second) {
    return [&](auto&& a, auto&& b) -> bool {
        return std::invoke(function, std::invoke(first, std::forward<decltype(a)>(a)),
                           std::invoke(second, std::forward<decltype(b)>(b)));
    };
}

// Each algorithm has a form for two iterators and one for a range.
#define RESHARD_RANGE_PREDICATE(name)                                                                    \
    template <input_or_output_iterator Iterator, class Predicate, class Projection = identity>           \
    constexpr auto name(Iterator begin, Iterator end, Predicate predicate, Projection projection = {}) { \
        return std::name(begin, end, ranges::projected(predicate, projection));                          \
    }                                                                                                    \
    template <range Range, class Predicate, class Projection = identity>                                 \
    constexpr auto name(Range&& all, Predicate predicate, Projection projection = {}) {                  \
        return std::name(std::begin(all), std::end(all), ranges::projected(predicate, projection));      \
    }
RESHARD_RANGE_PREDICATE(all_of)
RESHARD_RANGE_PREDICATE(any_of)
RESHARD_RANGE_PREDICATE(none_of)
RESHARD_RANGE_PREDICATE(count_if)
RESHARD_RANGE_PREDICATE(find_if)
#undef RESHARD_RANGE_PREDICATE

#define RESHARD_RANGE_ORDER(name)                                                                   \
    template <input_or_output_iterator Iterator, class Less = less, class Projection = identity>    \
    constexpr auto name(Iterator begin, Iterator end, Less less = {}, Projection projection = {}) { \
        return std::name(begin, end, ranges::projected(less, projection));                          \
    }                                                                                               \
    template <range Range, class Less = less, class Projection = identity>                          \
    constexpr auto name(Range&& all, Less less = {}, Projection projection = {}) {                  \
        return std::name(std::begin(all), std::end(all), ranges::projected(less, projection));      \
    }
RESHARD_RANGE_ORDER(sort)
RESHARD_RANGE_ORDER(stable_sort)
RESHARD_RANGE_ORDER(is_sorted)
RESHARD_RANGE_ORDER(min_element)
RESHARD_RANGE_ORDER(max_element)
#undef RESHARD_RANGE_ORDER

template <input_or_output_iterator Iterator, class Value, class Projection = identity>
constexpr auto find(Iterator begin, Iterator end, const Value& value, Projection projection = {}) {
    return std::find_if(begin, end, [&](const auto& one) { return std::invoke(projection, one) == value; });
}
template <range Range, class Value, class Projection = identity>
constexpr auto find(Range&& all, const Value& value, Projection projection = {}) {
    return ranges::find(std::begin(all), std::end(all), value, std::move(projection));
}

template <input_or_output_iterator Iterator, class Value, class Projection = identity>
constexpr auto count(Iterator begin, Iterator end, const Value& value, Projection projection = {}) {
    return std::count_if(begin, end, [&](const auto& one) { return std::invoke(projection, one) == value; });
}
template <range Range, class Value, class Projection = identity>
constexpr auto count(Range&& all, const Value& value, Projection projection = {}) {
    return ranges::count(std::begin(all), std::end(all), value, std::move(projection));
}

template <range Range, class Equal = equal_to, class Projection = identity>
constexpr auto adjacent_find(Range&& all, Equal equal = {}, Projection projection = {}) {
    return std::adjacent_find(std::begin(all), std::end(all), ranges::projected(equal, projection));
}

template <input_or_output_iterator Iterator, class Value, class Less = less, class Projection = identity>
constexpr auto lower_bound(Iterator begin, Iterator end, const Value& value, Less less = {},
                           Projection projection = {}) {
    return std::lower_bound(begin, end, value, [&](const auto& one, const auto& wanted) {
        return std::invoke(less, std::invoke(projection, one), wanted);
    });
}
template <range Range, class Value, class Less = less, class Projection = identity>
constexpr auto lower_bound(Range&& all, const Value& value, Less less = {}, Projection projection = {}) {
    return ranges::lower_bound(std::begin(all), std::end(all), value, std::move(less), std::move(projection));
}

template <range Range, class Value, class Less = less, class Projection = identity>
constexpr auto upper_bound(Range&& all, const Value& value, Less less = {}, Projection projection = {}) {
    return std::upper_bound(std::begin(all), std::end(all), value, [&](const auto& wanted, const auto& one) {
        return std::invoke(less, wanted, std::invoke(projection, one));
    });
}

template <range Range, class Value, class Less = less, class Projection = identity>
constexpr bool binary_search(Range&& all, const Value& value, Less less = {}, Projection projection = {}) {
    const auto place = ranges::lower_bound(all, value, less, projection);
    return place != std::end(all) && !std::invoke(less, value, std::invoke(projection, *place));
}

#define RESHARD_RANGE_PAIR(name, Default)                                                                         \
    template <range One, range Other, class Function = Default, class First = identity, class Second = identity>  \
    constexpr auto name(One&& one, Other&& other, Function function = {}, First first = {}, Second second = {}) { \
        return std::name(std::begin(one), std::end(one), std::begin(other), std::end(other),                      \
                         ranges::projected(function, first, second));                                             \
    }
RESHARD_RANGE_PAIR(equal, equal_to)
RESHARD_RANGE_PAIR(is_permutation, equal_to)
#undef RESHARD_RANGE_PAIR

// The comparison sees elements of both ranges in both orders, so they must have one projection.
template <range One, range Other, class Less = less, class Projection = identity>
constexpr bool lexicographical_compare(One&& one, Other&& other, Less less = {}, Projection projection = {},
                                       Projection = {}) {
    return std::lexicographical_compare(std::begin(one), std::end(one), std::begin(other), std::end(other),
                                        ranges::projected(less, projection));
}

template <range One, range Other, class Output>
constexpr auto set_difference(One&& one, Other&& other, Output into) {
    return std::set_difference(std::begin(one), std::end(one), std::begin(other), std::end(other), into);
}

template <range Range, class Output>
constexpr auto copy(Range&& all, Output into) {
    return std::copy(std::begin(all), std::end(all), into);
}
template <range Range, class Output, class Predicate>
constexpr auto copy_if(Range&& all, Output into, Predicate predicate) {
    return std::copy_if(std::begin(all), std::end(all), into,
                        [&](const auto& one) -> bool { return std::invoke(predicate, one); });
}
template <range Range, class Output>
constexpr auto move(Range&& all, Output into) {
    return std::move(std::begin(all), std::end(all), into);
}
template <range Range, class Output, class Function>
constexpr auto transform(Range&& all, Output into, Function function) {
    return std::transform(std::begin(all), std::end(all), into,
                          [&](auto&& one) { return std::invoke(function, std::forward<decltype(one)>(one)); });
}
template <range Range, class Function>
constexpr void for_each(Range&& all, Function function) {
    for (auto&& one : all) std::invoke(function, std::forward<decltype(one)>(one));
}
template <range Range, class Value>
constexpr void fill(Range&& all, const Value& value) {
    std::fill(std::begin(all), std::end(all), value);
}
template <range Range>
constexpr void reverse(Range&& all) {
    std::reverse(std::begin(all), std::end(all));
}

// The elements that are left over.
template <range Range, class Equal = equal_to, class Projection = identity>
constexpr auto unique(Range&& all, Equal equal = {}, Projection projection = {}) {
    const auto end = std::end(all);
    return subrange(std::unique(std::begin(all), end, ranges::projected(equal, projection)), end);
}
template <range Range, class Predicate, class Projection = identity>
constexpr auto stable_partition(Range&& all, Predicate predicate, Projection projection = {}) {
    const auto end = std::end(all);
    return subrange(std::stable_partition(std::begin(all), end, ranges::projected(predicate, projection)), end);
}

template <range Range, class Less = less, class Projection = identity>
constexpr auto max(Range&& all, Less less = {}, Projection projection = {}) {
    return *ranges::max_element(all, std::move(less), std::move(projection));
}

}  // namespace ranges

namespace views {

// The numbers from `begin` to `end`, without the last.
template <class Number>
vector<Number> iota(Number begin, type_identity_t<Number> end) {
    vector<Number> all(static_cast<size_t>(end - begin));
    std::iota(all.begin(), all.end(), begin);
    return all;
}

}  // namespace views
_LIBCPP_END_NAMESPACE_STD
