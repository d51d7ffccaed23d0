// Macros that return the failure of a called function.
#pragma once

#include <utility>

#include <tl/expected.hpp>

#define RESHARD_PASTE_(a, b) a##b
#define RESHARD_PASTE(a, b) RESHARD_PASTE_(a, b)

/// RESHARD_TRY(const auto& name, expression): returns if `expression` failed. Otherwise `name` is its value to the end
/// of the block.
#define RESHARD_TRY(declaration, ...)                                                                                \
    auto RESHARD_PASTE(tried_, __LINE__) = __VA_ARGS__;                                                              \
    if (!RESHARD_PASTE(tried_, __LINE__)) return tl::unexpected(std::move(RESHARD_PASTE(tried_, __LINE__)).error()); \
    declaration = *RESHARD_PASTE(tried_, __LINE__)

/// RESHARD_ASSIGN(place, expression): the same, but moves the value to an existing object.
#define RESHARD_ASSIGN(place, ...)                                  \
    RESHARD_TRY(auto& RESHARD_PASTE(held_, __LINE__), __VA_ARGS__); \
    place = std::move(RESHARD_PASTE(held_, __LINE__))

/// RESHARD_CHECK(expression): returns if `expression` failed, and drops its value.
#define RESHARD_CHECK(...) \
    if (auto tried_ = __VA_ARGS__; !tried_) return tl::unexpected(std::move(tried_).error())
