// The planner's policy: one row for each class of question, with its stages and the tests that end it.
#pragma once

#include "synth/rule_table.hpp"

namespace reshard {

/// After a stage: whether the best candidate is the answer, and if so, whether a rule recognized it as an optimum.
struct Enough {
    bool (*holds)(Inquiry&);
    bool recognized = false;  ///< the reason is StopReason::one_step
};

/// One group of rules within a row.
struct Stage {
    RuleGroup group;
    bool (*runs)(const Inquiry&);  ///< false: the group is skipped
    Enough enough;                 ///< tested even if the group was skipped
    bool may_improve = false;      ///< its candidates still count if the stage before was enough
};

/// One class of question. Stages run in order until one is enough. After that only `explain` asks the rest, to list it.
struct Row {
    PolicyRow named;
    bool (*applies)(const Inquiry&);
    std::span<const Stage> stages;
    bool hands_on = false;  ///< if no stage is enough, the question goes on to the next row that applies
};

/// The table. A question takes the first row that applies.
[[nodiscard]] std::span<const Row> policy();

/// The row of a question whose two halves are answered one after the other. It has no stages of its own.
[[nodiscard]] PolicyRow halves_row();

/// A plan of collectives alone is a candidate, too: its steps may end later than an exchange does, but sooner in
/// pieces.
[[nodiscard]] bool weighs_collectives(const Options& options);

}  // namespace reshard
