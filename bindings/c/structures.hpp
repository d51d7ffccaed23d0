// Structures that a program passes. It may have been compiled with an earlier version, whose structures end earlier.
#pragma once

#include <cstring>
#include <string>

#include "src/base/try.hpp"

namespace reshard::c {

/// Checks that a structure has the size that this library knows.
template <class Struct>
Result<void> known_size(std::size_t size, const char* name) {
    if (size == sizeof(Struct)) return {};
    return fail(Code::usage, std::string("struct ") + name + " of " + std::to_string(size) +
                                 " bytes; this library knows " + std::to_string(sizeof(Struct)) +
                                 " (make it with its INITIALIZER)");
}

/// A structure of the caller's; `otherwise` for NULL. A program compiled with an earlier version has fewer fields, but
/// at least `earliest` bytes; missing fields come from `otherwise`.
template <class Struct>
Result<Struct> structure(const Struct* given, const Struct& otherwise, const char* name,
                         std::size_t earliest = sizeof(Struct)) {
    Struct whole = otherwise;
    if (given == nullptr) return whole;
    if (given->size < earliest || given->size > sizeof(Struct)) RESHARD_CHECK(known_size<Struct>(given->size, name));
    std::memcpy(&whole, given, given->size);
    return whole;
}

/// Fills a structure of the caller's; of a program that was compiled when it ended after `earlier` bytes, those.
template <class Struct>
Result<void> fill(Struct* place, Struct with, const char* name, std::size_t earlier = sizeof(Struct)) {
    if (place == nullptr) return fail(Code::usage, std::string("struct ") + name + " is needed, NULL was given");
    if (place->size != earlier) {
        RESHARD_CHECK(known_size<Struct>(place->size, name));
    }
    with.size = place->size;
    std::memcpy(place, &with, with.size);
    return {};
}

}  // namespace reshard::c
