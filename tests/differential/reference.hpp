// The exact optimum, by brute force. Every layout of a small mesh is a node. Every pair of layouts with a step that the
// judge types is an edge. Dijkstra does the rest. It shares no code with synth.
#pragma once

#include <functional>
#include <vector>

#include "reshard/planner/step.hpp"

namespace reshard::test {

class Reference {
public:
    /// All layouts of f32[shape] on `mesh` with dimensions sharded, in any order, by the digits of one of `cuts`. A cut
    /// lists digits that make up the device number. Layouts that do not divide need Ragged::yes. `cost` prices every
    /// step of `kinds` that the judge types between two layouts. With Sums::yes digits may also be unreduced. With
    /// Ragged::by_turns the digits of a dimension cut it one after another, like torch.chunk, not once into all shards.
    enum class Ragged { no, yes, by_turns };
    enum class Sums { no, yes };
    using Cost = std::function<Index(const Layout& before, const Step& step, const Move& move)>;
    Reference(const Mesh& mesh, const std::vector<Index>& shape, const std::vector<AtomList>& cuts,
              const std::vector<StepKind>& kinds, const Cost& cost, Ragged ragged = Ragged::no, Sums sums = Sums::no);

    /// Steps are the collectives without reductions; the cost is the elements received.
    Reference(const Mesh& mesh, const std::vector<Index>& shape, const std::vector<AtomList>& cuts);

    [[nodiscard]] const std::vector<Layout>& layouts() const { return layouts_; }

    /// The least sum of costs from layout `source` to each layout, with no tile on the way larger than `tile_max`;
    /// index_max if there is no way.
    [[nodiscard]] std::vector<Index> optima(std::size_t source, Index tile_max) const;

private:
    std::vector<Layout> layouts_;
    std::vector<std::vector<std::pair<std::size_t, Index>>> edges_;  // per layout: (next, cost)
};

}  // namespace reshard::test
