// Plans that run one after another on a backend, without a planner.
#pragma once

#include "reshard/boxes/boxes.hpp"
#include "src/execute/bucket_run.hpp"

namespace reshard {

/// Rounds of plans, each with one plan for every array. The first round reads the sources. Later rounds read and write
/// the targets.
class Rounds {
public:
    /// Collective, in as many rounds on every rank. Errors: backend.
    [[nodiscard]] static Result<Rounds> prepare(std::vector<std::vector<RankPlan>> rounds, Backend& backend);

    [[nodiscard]] Index staging_bytes() const;
    /// The bytes of this rank, and how the backend moves them.
    [[nodiscard]] std::string describe(Index rank, const BoxTraffic& traffic) const;
    /// Binds one entry per array. `source` and `target` name the buffers in errors. Tells peers of a failure.
    /// Errors: mismatch if a buffer is too small or null, or if memory that is written overlaps any other.
    [[nodiscard]] Result<std::unique_ptr<Bound>> bind(std::span<const Buffers> buffers, std::string_view source,
                                                      std::string_view target);
    void report_failure(const Error& why);

private:
    struct Sizes {
        Index source_bytes = 0;
        Index target_bytes = 0;
    };
    [[nodiscard]] Result<std::unique_ptr<Bound>> try_bind(std::span<const Buffers> buffers, std::string_view source,
                                                          std::string_view target) const;

    std::vector<Sizes> arrays_;
    std::vector<std::shared_ptr<Prepared>> rounds_;
    std::shared_ptr<Executor::RunState> runs_ = std::make_shared<Executor::RunState>();
};

}  // namespace reshard
