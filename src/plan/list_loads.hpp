// What the devices of a list send and receive, added up device by device before the busiest one is looked for: who is
// busy with one array may rest with another.
#pragma once

#include <optional>
#include <unordered_map>

#include "reshard/algebra/list.hpp"
#include "reshard/cost.hpp"
#include "src/plan/device_sets.hpp"

namespace reshard {

/// Adds up what runs. Up to `told_apart_max` devices each has its own sums, beyond that each class of devices that are
/// in the same meshes. Equal plans are counted once. A step in which all devices do the same is counted in closed form;
/// others transfer by transfer, as long as the budget lasts. Beyond it each device counts as the busiest of the step,
/// which is never less than the truth.
class ListLoads {
public:
    static constexpr Index told_apart_max = Index{1} << 16;

    /// pre: verdicts are those of the list's plans as they run. All three outlive this.
    ListLoads(const ListPlan& list, std::span<const Verdict> verdicts, const Machine& machine);
    /// Judged without a machine: all devices reach each other alike.
    ListLoads(const ListPlan& list, std::span<const Verdict> verdicts);

    /// Of these arrays, on the innermost level.
    [[nodiscard]] ListLoad load_of(std::span<const std::size_t> arrays);
    /// Of all arrays that load_of was asked for.
    [[nodiscard]] ListLoad load_of_all() const { return load(all_); }
    /// What the busiest device takes for these arrays: latencies, bytes and local copies of all their steps.
    [[nodiscard]] Index picoseconds_of(std::span<const std::size_t> arrays);
    /// No protocol moves all arrays such that every device receives less. Bytes.
    [[nodiscard]] Index lower_bound_bytes();

private:
    // Of a seat: a device, or a class of devices. A link is a seat's, or a block's that shares a level's connection.
    struct Sums {
        std::vector<Index> received, sent;  // bytes, by level and link
        std::vector<Index> pair, waits;     // bytes, picoseconds; by level and seat
        std::vector<Index> messages;        // by seat
        std::vector<Index> copies;          // picoseconds, by seat
        bool received_exact = true;
        bool sent_exact = true;
    };
    // What every device of a set has to do.
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
    bool one_link_ = false;                            // all devices reach each other alike, at any rate
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
