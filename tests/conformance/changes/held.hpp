// A buffer of the program as a backend reaches it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "reshard/backends/backend.hpp"

namespace reshard::conformance {

/// A buffer of the program, and the memory that a run reaches. They are one unless the backend's memory is on a device.
class Held {
public:
    Held(Backend& backend, std::vector<std::byte>& own) : backend_(backend), own_(own) {
        if (!backend.on_device()) return;
        memory_ = backend.allocate(std::ssize(own)).value();
        EXPECT_TRUE(backend.put(own, memory_->bytes()));
    }
    [[nodiscard]] std::span<std::byte> bytes() { return memory_ ? memory_->bytes() : std::span(own_); }
    /// Copies what a run has written to the program's buffer.
    [[nodiscard]] Result<void> get() { return memory_ ? backend_.get(memory_->bytes(), own_) : Result<void>(); }

private:
    Backend& backend_;
    std::vector<std::byte>& own_;
    std::unique_ptr<Memory> memory_;
};

}  // namespace reshard::conformance
