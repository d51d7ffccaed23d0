// Memory of one array: of the caller's or of the backend's, with cells between its rows that no run may touch.
#pragma once

#include <memory>
#include <vector>

#include "reshard/backends/backend.hpp"
#include "support/random_bytes.hpp"

namespace reshard::conformance {

enum class MemoryKind { of_caller, of_backend, registered };

/// An array of `shape` with `pad` cells before it and after each row.
class PaddedArray {
public:
    PaddedArray(const std::vector<Index>& shape, Index pad, Index element_bytes, MemoryKind kind, Backend& backend);

    [[nodiscard]] const Storage& storage() const { return storage_; }
    /// In elements from the start, for each cell in row-major order.
    [[nodiscard]] const std::vector<Index>& places() const { return places_; }
    [[nodiscard]] std::span<std::byte> bytes() { return memory_; }

private:
    Storage storage_;
    std::vector<Index> places_;
    test::Bytes own_;
    std::unique_ptr<Memory> allocated_;
    Registration registration_;  // pages are registered only in part
    std::span<std::byte> memory_;
};

}  // namespace reshard::conformance
