#include "src/boxes/box_index.hpp"

#include <algorithm>
#include <bit>

namespace reshard {

namespace {

constexpr std::size_t fan = 8;  // children of a node

// Boxes may have more elements than 64 bits count.
bool holds_nothing(const Box& box) {
    return std::ranges::any_of(box, [](const Interval& side) { return side.size() <= 0; });
}

Index center(const Interval& side) { return side.begin + side.size() / 2; }

// Places centers on the curve: takes a bit of each dimension in turn, the most significant first.
class Curve {
public:
    Curve(std::span<const NumberedBox> boxes, std::size_t dims) {
        // Four cells a box in each dimension tell neighbours apart well enough.
        const auto wanted = static_cast<std::size_t>(std::bit_width(boxes.size())) + 2 * dims;
        bits_ = dims == 0 ? 0 : std::min(wanted / dims + 1, 63 / dims);
        for (std::size_t k = 0; k < dims; ++k) {
            const auto at = [&](const NumberedBox& one) { return center((*one.box)[k]); };
            const auto [least, most] = std::ranges::minmax(boxes, {}, at);
            const auto width = std::bit_width(static_cast<std::uint64_t>(at(most) - at(least)));
            first_.push_back(at(least));
            shift_.push_back(std::max<int>(static_cast<int>(width) - static_cast<int>(bits_), 0));
        }
    }
    [[nodiscard]] std::uint64_t place(const Box& box) const {
        std::uint64_t place = 0;
        for (std::size_t bit = bits_; bit-- > 0;)
            for (std::size_t k = 0; k < box.size(); ++k)
                place = place << 1 | (static_cast<std::uint64_t>(center(box[k]) - first_[k]) >> shift_[k] >> bit & 1);
        return place;
    }

private:
    std::size_t bits_ = 0;  // of each dimension
    std::vector<Index> first_;
    std::vector<int> shift_;
};

}  // namespace

BoxIndex::BoxIndex(std::vector<NumberedBox> boxes, std::size_t dims) : dims_(dims) {
    std::erase_if(boxes, [](const NumberedBox& one) { return holds_nothing(*one.box); });
    if (boxes.empty()) return;
    const Curve curve(boxes, dims);
    std::vector<std::pair<std::uint64_t, std::size_t>> order(boxes.size());
    for (std::size_t i = 0; i < boxes.size(); ++i) order[i] = {curve.place(*boxes[i].box), i};
    std::ranges::sort(order);
    boxes_.reserve(boxes.size());
    Level& lowest = levels_.emplace_back();
    lowest.nodes = boxes.size();
    lowest.bounds.reserve(2 * dims * boxes.size());
    for (const auto& [place, i] : order) {
        boxes_.push_back(boxes[i]);
        for (const Interval& side : *boxes[i].box) {
            lowest.bounds.push_back(side.begin);
            lowest.bounds.push_back(side.end);
        }
    }
    while (levels_.back().nodes > 1) add_level();
}

void BoxIndex::add_level() {
    const Level& below = levels_.back();
    const std::size_t width = 2 * dims_;
    Level level;
    level.nodes = (below.nodes + fan - 1) / fan;
    level.bounds.reserve(width * level.nodes);
    for (std::size_t first = 0; first < below.nodes; first += fan) {
        const std::size_t end = std::min(first + fan, below.nodes);
        for (std::size_t k = 0; k < width; k += 2) {
            Index least = below.bounds[first * width + k];
            Index most = below.bounds[first * width + k + 1];
            for (std::size_t child = first + 1; child < end; ++child) {
                least = std::min(least, below.bounds[child * width + k]);
                most = std::max(most, below.bounds[child * width + k + 1]);
            }
            level.bounds.push_back(least);
            level.bounds.push_back(most);
        }
    }
    levels_.push_back(std::move(level));
}

bool BoxIndex::touches(const Level& level, std::size_t node, const Box& box) const {
    const Index* bounds = level.bounds.data() + 2 * dims_ * node;
    for (std::size_t k = 0; k < dims_; ++k, bounds += 2)
        if (bounds[0] >= box[k].end || box[k].begin >= bounds[1]) return false;
    return true;
}

Box BoxIndex::common(std::size_t number, const Box& box) const {
    const Index* bounds = levels_.front().bounds.data() + 2 * dims_ * number;
    Box common = box;
    for (Interval& side : common) {
        side = {std::max(side.begin, bounds[0]), std::min(side.end, bounds[1])};
        bounds += 2;
    }
    return common;
}

std::vector<CommonBox> BoxIndex::overlapping(const Box& box) const {
    std::vector<CommonBox> found;
    if (levels_.empty() || holds_nothing(box)) return found;
    struct Node {
        std::size_t level;
        std::size_t number;
    };
    std::vector<Node> left = {{levels_.size() - 1, 0}};
    while (!left.empty()) {
        const Node node = left.back();
        left.pop_back();
        if (!touches(levels_[node.level], node.number, box)) continue;
        if (node.level == 0) {
            const NumberedBox& own = boxes_[node.number];
            found.push_back({own.rank, own.number, common(node.number, box)});
            continue;
        }
        const std::size_t end = std::min((node.number + 1) * fan, levels_[node.level - 1].nodes);
        for (std::size_t child = node.number * fan; child < end; ++child) left.push_back({node.level - 1, child});
    }
    std::ranges::sort(found, [](const CommonBox& a, const CommonBox& b) {
        return a.rank != b.rank ? a.rank < b.rank : a.number < b.number;
    });
    return found;
}

}  // namespace reshard
