// An order as sequences of activities on resources, and an estimate of what a change of a sequence gains.
#pragma once

#include <span>

#include "synth/program/dice.hpp"
#include "synth/program/times.hpp"

namespace reshard::program {

/// Activities that follow each other on a resource without a pause, in a chain that ends last.
struct Block {
    int resource = 0;
    std::span<const int> activities = {};  ///< in the order, at least two
};

class Sequences {
public:
    explicit Sequences(const Activities& program);

    /// Takes an order. Returns its value; nullopt as Times::of.
    std::optional<Value> set(const Order& order);

    [[nodiscard]] int position_of(int activity) const { return position_[activity]; }  ///< in the order

    /// The blocks of a chain that ends last: each of its activities starts when the one before it ends. The dice choose
    /// a chain if there are several. The spans are valid until the next call.
    const std::vector<Block>& blocks(Dice& dice);

    /// About the time from the beginning to the end on the longest way through the activities of `changed`, if the
    /// resource serves them in this sequence (Taillard 1994). It is no bound: other activities may wait longer, too.
    /// pre: neighbours on the resource in the order, in another sequence.
    [[nodiscard]] Index estimate(int resource, std::span<const int> now, std::span<const int> changed);

    /// False if another of these activities may need the first one (Balas and Vazacopoulos 1998).
    [[nodiscard]] bool may_go_last(std::span<const int> activities) const;
    /// False if the last one may need another of these activities.
    [[nodiscard]] bool may_go_first(std::span<const int> activities) const;

private:
    // Before and behind an activity on one of its resources; -1: none.
    struct Neighbours {
        int resource = 0;
        int before = -1;
        int behind = -1;
    };
    void link(const Order& order);
    void find_tails(const Order& order);
    void walk_back(int last, Dice& dice);
    [[nodiscard]] std::span<Neighbours> all_of(int activity);
    [[nodiscard]] Neighbours& on(int resource, int activity);
    // When its inputs and its other resources are ready.
    [[nodiscard]] Index ready(int activity, int except);
    // From its end to the end of the order, by its users and by its other resources.
    [[nodiscard]] Index tail(int activity, int except);
    [[nodiscard]] Index start(int j) const { return times_.start()[j]; }
    [[nodiscard]] Index end(int j) const { return times_.end()[j]; }
    [[nodiscard]] Index passes_at(int j) const { return end(j) - program_.all[j].early; }
    // From its start to the end of the order.
    [[nodiscard]] Index way(int j) const { return program_.all[j].picoseconds + tail_[j]; }

    const Activities& program_;
    Times times_;
    Index end_ = 0;
    Order order_;
    std::vector<int> position_;
    std::vector<Index> tail_;
    std::vector<std::size_t> first_;  // of each activity, in neighbours_
    std::vector<Neighbours> neighbours_;
    std::vector<int> last_on_;     // of each resource
    std::vector<int> chain_;       // from its end
    std::vector<int> waited_for_;  // the resource that chain_[k] waited for; -1: an input
    std::vector<Block> blocks_;
    std::vector<Index> heads_;  // of estimate
};

}  // namespace reshard::program
