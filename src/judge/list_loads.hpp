// Bytes that the devices of a list send and receive. They are summed for each device before the busiest one is chosen:
// a device that is busy with one array may be idle with another.
#pragma once

#include <optional>
#include <unordered_map>

#include "reshard/planner/cost.hpp"
#include "reshard/planner/list.hpp"
#include "src/judge/device_sets.hpp"

namespace reshard {

/// Sums the traffic of the plans as they run. Up to `told_apart_max` devices have sums of their own; above that, each
/// class of devices in the same meshes has. Equal plans are counted once. Uniform steps are counted in closed form,
/// other steps transfer by transfer while the budget lasts. After that each device counts as the step's busiest, which
/// is never less than the truth.
class ListLoads {
public:
    static constexpr Index told_apart_max = Index{1} << 16;

    /// pre: `verdicts` are of the list's plans as they run. All three outlive this.
    ListLoads(const ListPlan& list, std::span<const Verdict> verdicts, const Machine& machine);
    /// For the judge, which knows no machine: all devices are at one distance.
    ListLoads(const ListPlan& list, std::span<const Verdict> verdicts);

    /// The load of these arrays on the innermost level.
    [[nodiscard]] ListLoad load_of(std::span<const std::size_t> arrays);
    /// The load of all arrays that were given to load_of.
    [[nodiscard]] ListLoad load_of_all() const { return load(all_); }
    /// The time of the busiest device for these arrays: latencies, bytes and local copies of all their steps.
    [[nodiscard]] Index picoseconds_of(std::span<const std::size_t> arrays);
    /// No protocol moves all arrays such that every device receives less. Bytes.
    [[nodiscard]] Index lower_bound_bytes();

private:
    // A seat is a device, or a class of devices. A link belongs to a seat, or to a block that shares a connection.
    struct Sums {
        std::vector<Index> received, sent;  // bytes, by level and link
        std::vector<Index> pair, waits;     // bytes, picoseconds; by level and seat
        std::vector<Index> messages;        // by seat
        std::vector<Index> copies;          // picoseconds, by seat
        bool received_exact = true;
        bool sent_exact = true;
    };
    // The work of every device in a set.
    struct Same {
        std::vector<Index> received, sent, pair, waits;  // by level
        Index messages = 0;
        Index copies = 0;
    };
    // An array of each kind of plan, and how many there are.
    struct Kind {
        std::size_t array = 0;
        Index times = 0;
    };
    using Kinds = std::vector<Kind>;

    void find_seats();
    [[nodiscard]] std::size_t set_of(const Mesh& mesh) { return sets_.number_of(mesh); }
    [[nodiscard]] Sums none() const;
    [[nodiscard]] std::size_t link(std::size_t level, std::size_t seat) const;
    [[nodiscard]] Kinds kinds_of(std::span<const std::size_t> arrays) const;
    [[nodiscard]] bool afford(Index cost);
    [[nodiscard]] Index cost_of(const Layout& before, const Step& step, const Move& move) const;
    [[nodiscard]] const Plan& running(std::size_t array) const;

    [[nodiscard]] Sums sums_of(std::span<const std::size_t> arrays);
    void add_plan(Sums& sums, const Kind& kind);
    void add_step(Sums& sums, const Layout& before, const Step& step, const Move& move, const Network& network,
                  Index times);
    void add_at_most(Sums& sums, const Layout& before, const Step& step, const Move& move, const Network& network,
                     Index times);
    void add_bound(Sums& sums, const Kind& kind);
    void add_received(Sums& sums, const Layout& before, const Step& step, const Move& move, Index bytes);
    [[nodiscard]] Same& same_of(const Mesh& mesh);
    void spread(Sums& sums);
    template <class Visit>
    void each_seat(std::size_t set, const Visit& visit) const;
    [[nodiscard]] ListLoad load(const Sums& sums) const;

    const ListPlan& list_;
    const std::span<const Verdict> verdicts_;
    Machine machine_;
    bool one_link_ = false;                            // all devices are at one distance
    std::unordered_map<std::size_t, Plan> exchanges_;  // of arrays that run as one
    std::vector<std::size_t> kind_of_;                 // the first array with the same plan
    DeviceSets sets_;
    bool each_device_ = false;  // has a seat, by its number
    std::size_t seats_ = 0;
    std::vector<std::vector<std::size_t>> seats_of_;  // by set, of classes
    std::unordered_map<std::size_t, Same> same_;      // by set
    Index budget_ = 0;
    Sums all_;
};

}  // namespace reshard
