// The exact optimum, by brute force: every layout of a small mesh is a node, every pair of layouts for which the judge
// types a step is an edge, and Dijkstra does the rest. It shares no code with synth.
#pragma once

#include <functional>
#include <vector>

#include "reshard/planner/step.hpp"

namespace reshard::test {

class Reference {
public:
    /// All layouts of f32[shape] on `mesh` whose dimensions are sharded, in any order, by the digits of one of
    /// `cuts`; a cut lists digits that make up the device number. Sizes that do not divide are left out, or there with
    /// Ragged::yes. Every step of `kinds` that the judge types between two of them costs what `cost` says.
    /// With Sums::yes digits may also be unreduced. With Ragged::by_turns the digits of a dimension cut it one after
    /// another, as torch.chunk does, not once into all shards.
    enum class Ragged { no, yes, by_turns };
    enum class Sums { no, yes };
    using Cost = std::function<Index(const Layout& before, const Step& step, const Move& move)>;
    Reference(const Mesh& mesh, const std::vector<Index>& shape, const std::vector<AtomList>& cuts,
              const std::vector<StepKind>& kinds, const Cost& cost, Ragged ragged = Ragged::no, Sums sums = Sums::no);

    /// The collectives without reductions, and the elements received.
    Reference(const Mesh& mesh, const std::vector<Index>& shape, const std::vector<AtomList>& cuts);

    [[nodiscard]] const std::vector<Layout>& layouts() const { return layouts_; }

    /// Least sum of costs from layout `source` to each layout, no tile on the way larger than `tile_max`; index_max
    /// where there is no way.
    [[nodiscard]] std::vector<Index> optima(std::size_t source, Index tile_max) const;

private:
    std::vector<Layout> layouts_;
    std::vector<std::vector<std::pair<std::size_t, Index>>> edges_;  // per layout: (next, cost)
};

}  // namespace reshard::test
