// Tries a plan on the backend with random data. The result must equal the local backend's.
#pragma once

#include "party.hpp"
#include "reshard/execute.hpp"

namespace reshard::nccl::test {

/// A plan of one or several steps, from text: plan_of("x=2", "f32[4@x]", {{StepKind::all_gather, "f32[4]"}}).
struct Stop {
    StepKind kind;
    const char* layout;
};
[[nodiscard]] Plan plan_of(const char* mesh, const char* source, const std::vector<Stop>& stops);

/// Source and wanted target of every rank.
struct Wanted {
    Plan plan;
    std::vector<std::vector<std::byte>> sources;
    std::vector<std::vector<std::byte>> targets;
};
[[nodiscard]] Wanted wanted(const Plan& plan, unsigned seed);

/// One rank's buffers on its device.
class Trial {
public:
    Trial(Backend& backend, const Wanted& wanted, Index workspace_bytes);
    [[nodiscard]] Buffers buffers();
    void fill(const Wanted& wanted);  ///< fills the source, and the target with wrong values
    [[nodiscard]] bool right(const Wanted& wanted);
    [[nodiscard]] std::span<std::byte> source() { return source_->bytes(); }

private:
    Backend& backend_;
    std::size_t rank_;
    std::unique_ptr<Memory> source_;
    std::unique_ptr<Memory> target_;
    std::unique_ptr<Memory> workspace_;
};

}  // namespace reshard::nccl::test
