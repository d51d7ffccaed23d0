// What a function does with the failure of one that it calls: it returns it.
#pragma once

#include <utility>

#include <tl/expected.hpp>

#define RESHARD_PASTE_(a, b) a##b
#define RESHARD_PASTE(a, b) RESHARD_PASTE_(a, b)

/// RESHARD_TRY(const auto& name, expression): what the Result of `expression` holds, by that name to the end of the
/// block; a failure is returned.
#define RESHARD_TRY(declaration, ...)                                                                                \
    auto RESHARD_PASTE(tried_, __LINE__) = __VA_ARGS__;                                                              \
    if (!RESHARD_PASTE(tried_, __LINE__)) return tl::unexpected(std::move(RESHARD_PASTE(tried_, __LINE__)).error()); \
    declaration = *RESHARD_PASTE(tried_, __LINE__)

/// RESHARD_ASSIGN(place, expression): the same, moved into something that is there already.
#define RESHARD_ASSIGN(place, ...)                                  \
    RESHARD_TRY(auto& RESHARD_PASTE(held_, __LINE__), __VA_ARGS__); \
    place = std::move(RESHARD_PASTE(held_, __LINE__))

/// RESHARD_CHECK(expression): a failure of it is returned; what it holds is not asked for.
#define RESHARD_CHECK(...) \
    if (auto tried_ = __VA_ARGS__; !tried_) return tl::unexpected(std::move(tried_).error())
