// The judge of schedules. It trusts nothing from the search: it derives times, resources and memory again.
#pragma once

#include "reshard/planner/cost.hpp"
#include "reshard/program/program.hpp"

namespace reshard {

/// A use of an array by a task.
struct UseNumber {
    std::size_t task = 0;  ///< of Program::tasks
    std::size_t use = 0;   ///< of Task::uses
    friend auto operator<=>(const UseNumber&, const UseNumber&) = default;
};

/// A move that the uses of a program ask for.
struct ProgramMove {
    std::string array;             ///< its name
    std::vector<UseNumber> users;  ///< uses of the moved array, ascending
    Judged<Plan> plan;             ///< from the layout of the made array to the layout of its users
    Index picoseconds = 0;         ///< its time
    /// True: its only user starts before the move has ended, and uses each piece when it has arrived. The plan then
    /// runs in an overlapped Split.
    bool in_pieces = false;
};

/// The pieces of a move in pieces; nullptr for other moves.
[[nodiscard]] const Split* pieces_of(const ProgramMove& move);

/// A task or a move, and when it starts.
struct ScheduledActivity {
    bool is_move = false;    ///< a move, not a task
    std::size_t number = 0;  ///< of Program::tasks, or of ProgramSchedule::moves
    Index start = 0;         ///< picoseconds after the start of the program
    friend bool operator==(const ScheduledActivity&, const ScheduledActivity&) = default;
};

/// When everything happens. The order is the whole solution: each device starts its activities and takes memory in this
/// order, and the starts follow from it. If the order fits the limits one by one, it never deadlocks, whatever the
/// times turn out to be.
struct ProgramSchedule {
    std::vector<ProgramMove> moves;        ///< in the order of their first users
    std::vector<ScheduledActivity> order;  ///< every task and every move once
};

/// The bytes that a device holds from a time on.
struct HeldBytes {
    Index picoseconds = 0;  ///< a time
    Index bytes = 0;        ///< held from this time on
    friend bool operator==(const HeldBytes&, const HeldBytes&) = default;
};

/// Devices that are in the same meshes of a program. They do the same at all times.
struct PlaceVerdict {
    Index device = 0;             ///< the smallest of them
    Index limit = index_max;      ///< bytes; index_max: none
    Index peak_bytes = 0;         ///< the most that each of them holds
    std::vector<HeldBytes> held;  ///< over time, ascending
    friend bool operator==(const PlaceVerdict&, const PlaceVerdict&) = default;
};

/// The judge's result.
struct ScheduleVerdict {
    Index picoseconds = 0;             ///< when the last activity ends
    std::vector<PlaceVerdict> places;  ///< by their smallest device
    friend bool operator==(const ScheduleVerdict&, const ScheduleVerdict&) = default;
};

/// Accepts a schedule if
/// (a) the order has each task and each move once, and each use in a new layout has one move;
/// (b) each activity starts when its inputs are there. The user of a move in pieces uses each of them for its part of
///     the time, in the order of travel, and no piece before it has arrived. A task has one such move at most;
/// (c) an engine of a device runs one task at a time, and a card of a level serves one move at a time. A move that no
///     level carries is a copy: it counts as a task of the engine `compute`;
/// (d) the order fits the limits, at the stated times and one by one.
/// Fails with the first reason against it. Errors: as validate; plan; infeasible (over a limit, with the device and the
/// bytes).
[[nodiscard]] Result<ScheduleVerdict> check(const Program& program, const ProgramSchedule& schedule,
                                            const Machine& machine);
/// As check, but returns program and schedule together with the verdict.
[[nodiscard]] Result<Judged<ProgramSchedule>> judge(Program program, ProgramSchedule schedule, const Machine& machine);

/// A schedule that keeps the limits of its program. Copies share it.
template <>
class Judged<ProgramSchedule> {
public:
    Judged(const Judged&) = default;             ///< a move copies too, as in Judged<Plan>
    Judged& operator=(const Judged&) = default;  ///< the same

    [[nodiscard]] const Program& program() const { return passed_->program; }            ///< what is scheduled
    [[nodiscard]] const ProgramSchedule& schedule() const { return passed_->schedule; }  ///< the one that was judged
    [[nodiscard]] const ScheduleVerdict& verdict() const { return passed_->verdict; }    ///< the result of the judge

private:
    friend Result<Judged<ProgramSchedule>> judge(Program program, ProgramSchedule schedule, const Machine& machine);
    struct Passed {
        Program program;
        ProgramSchedule schedule;
        ScheduleVerdict verdict;
    };
    explicit Judged(Passed passed) : passed_(std::make_shared<const Passed>(std::move(passed))) {}

    std::shared_ptr<const Passed> passed_;
};

/// The name of an activity: the name of its task, or the array of its move with the new layout.
[[nodiscard]] std::string name_of(const Program& program, const ProgramSchedule& schedule,
                                  const ScheduledActivity& activity);
/// How long an activity takes.
[[nodiscard]] Index picoseconds_of(const Program& program, const ProgramSchedule& schedule,
                                   const ScheduledActivity& activity);

/// A card: one direction of the connection of a device, or of a block of devices on a shared level.
struct Card {
    std::size_t level = 0;  ///< of the machine
    bool out = false;       ///< the direction
    Index number = 0;       ///< the device; on a shared level the block of the next inner level's devices
    friend auto operator<=>(const Card&, const Card&) = default;
};
/// The cards that a move holds while it runs, at each level that its plan loads, sorted. The devices of its source send
/// and the devices of its target receive. `devices` stand for all: on levels that are not shared, only their cards are
/// returned.
[[nodiscard]] std::vector<Card> cards_of(const Judged<Plan>& plan, const Machine& machine,
                                         std::span<const Index> devices);

}  // namespace reshard
