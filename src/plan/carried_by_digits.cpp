#include "src/plan/carried_by_digits.hpp"

#include <algorithm>
#include <cassert>
#include <unordered_map>

#include "src/plan/level_price.hpp"
#include "src/plan/overlap.hpp"

namespace reshard {

namespace {

constexpr Index devices_max = Index{1} << 22;
constexpr Index pairs_max = Index{1} << 22;  // of tiles of a dimension that is cut at stated indices
constexpr Index dense_max = 1024;            // entries of a table that are held, whatever they are

// One end's use of a digit: the dimension, the summand as the last one, and what a value adds to the shard number.
struct Use {
    int dim = -1;
    Index weight = 0;
};

struct Digit {
    Index size = 1;
    Index stride = 1;
    std::size_t level = 0;
    Use held;
    Use wanted;
    bool in_group = false;
};

// Tiles of one dimension of both ends that have something in common.
struct Common {
    Index held = 0;
    Index wanted = 0;
    Index elements = 0;
};

struct Dimension {
    Index held = 1;    // shards
    Index wanted = 1;  // shards
    Index most = 0;    // elements in common, of two shards
    std::vector<Common> common;
};

struct Count {
    Index elements = 0;
    Index tiles = 0;
};

std::optional<Dimension> dimension_of(const Dim& before, const Dim& after) {
    Dimension made{shard_count(before), shard_count(after), 0, {}};
    const bool blocks = before.pieces.empty() && after.pieces.empty();
    if (!blocks && saturating_multiply(made.held, made.wanted) > pairs_max) return std::nullopt;
    const Overlap overlap(before, after);
    const Index size = tile_extent(before);
    const Index wanted_size = tile_extent(after);
    for (Index wanted = 0; wanted < made.wanted; ++wanted) {
        Index first = 0;
        Index last = made.held;
        if (blocks) {
            const Interval wants = block(after.extent, wanted_size, wanted);
            if (wants.begin >= wants.end) continue;
            first = wants.begin / size;
            last = ceil_divide(wants.end, size);
        }
        for (Index held = first; held < last; ++held) {
            const Index elements = overlap.common(held, wanted);
            if (elements == 0) continue;
            made.common.push_back({held, wanted, elements});
            made.most = std::max(made.most, elements);
        }
    }
    return made;
}

// The summands of an exchange: a device has one, and wants one of the same number.
Dimension summands_of(const Layout& before, const Layout& after) {
    Dimension made{summand_count(before), summand_count(after), 1, {}};
    for (Index i = 0; i < std::min(made.held, made.wanted); ++i) made.common.push_back({i, i, 1});
    return made;
}

// For each device what its tile of one end has in common with the tiles that the others of a set have of the other end:
// a product over the dimensions, since no two dimensions of one end have a digit in common. The set: the devices that
// differ from it in digits that are free.
class Product {
public:
    template <class Free>
    Product(const std::vector<Digit>& digits, const std::vector<Dimension>& dimensions, Use Digit::*own,
            Use Digit::*other, Index times, const Free& free)
        : times_(times) {
        for (std::size_t i = 0; i < dimensions.size(); ++i)
            add(digits, dimensions[i], static_cast<int>(i), own, other, free);
    }

    void place(Index low_devices, Index devices) {
        for (Table& table : tables_) table.place(low_devices, devices);
    }
    [[nodiscard]] Count at(std::size_t low, std::size_t high) const {
        Count product{times_, times_};
        for (const Table& table : tables_) {
            const Count one = table.at(table.low[low] + table.high[high]);
            product.elements *= one.elements;
            product.tiles *= one.tiles;
        }
        return product;
    }

private:
    struct Table {
        std::vector<Count> counts;                     // where most are not 0
        std::unordered_map<std::size_t, Count> known;  // else
        std::vector<std::pair<Digit, Index>> weights;
        std::vector<std::size_t> low;   // by the lower digits of a position
        std::vector<std::size_t> high;  // by the upper ones

        [[nodiscard]] Count at(std::size_t index) const {
            if (!counts.empty()) return counts[index];
            const auto found = known.find(index);
            return found == known.end() ? Count{} : found->second;
        }

        void place(Index low_devices, Index devices) {
            const auto index = [&](Index position) {
                Index sum = 0;
                for (const auto& [digit, weight] : weights) sum += position / digit.stride % digit.size * weight;
                return static_cast<std::size_t>(sum);
            };
            for (Index position = 0; position < low_devices; ++position) low.push_back(index(position));
            for (Index position = 0; position < devices; position += low_devices) high.push_back(index(position));
        }
    };

    template <class Free>
    void add(const std::vector<Digit>& digits, const Dimension& dimension, int dim, Use Digit::*own, Use Digit::*other,
             const Free& free) {
        const bool holds = own == &Digit::held;
        Table table;
        Index fixed = 1;
        std::vector<std::array<Index, 3>> kept;  // weight in the other's number, size, weight here
        for (const Digit& digit : digits) {
            if ((digit.*other).dim != dim || free(digit)) continue;
            kept.push_back({(digit.*other).weight, digit.size, fixed});
            table.weights.emplace_back(digit, fixed);
            fixed *= digit.size;
        }
        const Index all = saturating_multiply(fixed, holds ? dimension.held : dimension.wanted);
        const bool dense = all <= dense_max || all / 4 <= std::ssize(dimension.common);
        for (const Digit& digit : digits)
            if ((digit.*own).dim == dim) table.weights.emplace_back(digit, (digit.*own).weight * fixed);
        if (dense) table.counts.resize(static_cast<std::size_t>(all));
        for (const Common& one : dimension.common) {
            Index at = (holds ? one.held : one.wanted) * fixed;
            const Index number = holds ? one.wanted : one.held;
            for (const auto& [weight, size, here] : kept) at += number / weight % size * here;
            const auto index = static_cast<std::size_t>(at);
            Count& count = dense ? table.counts[index] : table.known[index];
            count.elements += one.elements;
            ++count.tiles;
        }
        tables_.push_back(std::move(table));
    }

    Index times_;
    std::vector<Table> tables_;
};

class ByDigits {
public:
    ByDigits(const Layout& before, const Step& step, const Move& move, const Machine& machine,
             const NetworkDigits& network)
        : machine_(machine), devices_(device_count(before)) {
        moves_ = step.kind == StepKind::exchange || step.kind == StepKind::permute;
        one_in_ = step.kind == StepKind::all_reduce ? move.group_size : 1;
        times_ = step.kind == StepKind::all_reduce ? 2 : 1;
        network.each_digit([&](Index low, Index high, std::size_t level) {
            Digit digit{high / low, low, level, {}, {}, false};
            digit.held = use_of(before, digit);
            digit.wanted = use_of(step.layout, digit);
            digit.in_group = std::ranges::any_of(
                move.group, [&](Atom atom) { return atom.stride <= low && low < atom.stride * atom.size; });
            digits_.push_back(digit);
        });
        for (std::size_t i = 0; i < before.dims.size() && fits_; ++i) {
            auto made = dimension_of(before.dims[i], step.layout.dims[i]);
            fits_ = made.has_value();
            if (made) dimensions_.push_back(*std::move(made));
        }
        if (fits_ && moves_) dimensions_.push_back(summands_of(before, step.layout));
        for (const Digit& digit : digits_)
            replicated_ = replicated_ || (moves_ && digit.held.dim < 0 && digit.wanted.dim >= 0);
        for (std::size_t level = 0; level < machine.levels.size() && fits_; ++level) add_level(level);
    }

    [[nodiscard]] bool fits() const { return fits_; }
    [[nodiscard]] bool replicated() const { return replicated_; }

    Traffic count() {
        const std::size_t levels = machine_.levels.size();
        Index low_devices = 1;
        for (std::size_t i = digits_.size(); i-- > 0 && low_devices * low_devices < devices_;)
            low_devices *= digits_[i].size;
        for (Product& product : found_) product.place(low_devices, devices_);
        for (Level& one : levels_)
            for (Product* product : {&one.asked, &one.asked_inside}) product->place(low_devices, devices_);
        Index pair = times_;
        for (const Dimension& dimension : dimensions_) pair = saturating_multiply(pair, dimension.most);
        pair = ceil_divide(pair, one_in_);
        Traffic traffic{std::vector<Index>(levels), std::vector<Index>(levels), std::vector<Index>(levels)};
        for (std::size_t i = 0; i < levels; ++i) {
            const auto [elements, messages] = count(i, low_devices);
            traffic.elements[i] = ceil_divide(elements, one_in_);
            traffic.pair[i] = std::min(traffic.elements[i], pair);
            traffic.messages[i] = messages;
        }
        return traffic;
    }

private:
    struct Level {
        // What devices within the level want of its tile, and those that find it inside.
        Product asked;
        Product asked_inside;
        Index sharers = 1;            // holders of a tile within the level
        Index sharers_inside = 1;     // and inside it
        std::vector<Digit> replicas;  // in which these differ
        std::vector<Digit> blocks;    // that tell apart what shares a connection; none where nothing does
        bool shared = false;
    };

    [[nodiscard]] static Use use_of(const Layout& layout, const Digit& digit) {
        const auto weight = [&](const AtomList& atoms) -> Index {
            Index below = combinations(atoms);
            for (const Atom& atom : atoms) {
                below /= atom.size;
                if (atom.stride <= digit.stride && digit.stride < atom.stride * atom.size)
                    return below * (digit.stride / atom.stride);
            }
            return 0;
        };
        int dim = 0;
        for (const Dim& one : layout.dims) {
            if (const Index found = weight(one.atoms); found > 0) return {dim, found};
            ++dim;
        }
        if (const Index found = weight(layout.unreduced); found > 0) return {dim, found};
        return {};
    }

    void add_level(std::size_t level) {
        const std::vector<Digit>& digits = digits_;
        // A digit that an end does not use (or uses for summands that are added up) has as many of that end's tiles.
        const auto used = [&](const Use& use) {
            return use.dim >= 0 && use.dim < static_cast<int>(dimensions_.size());
        };
        const auto takes_part = [&](const Digit& digit) { return moves_ || digit.in_group; };
        const auto within = [&](const Digit& digit) { return takes_part(digit) && digit.level <= level; };
        const auto inside = [&](const Digit& digit) { return takes_part(digit) && digit.level < level; };
        // Of an exchange those that want a tile find it inside also where only holders differ in the level's digits.
        const auto near = [&](const Digit& digit) {
            return inside(digit) || (moves_ && digit.level == level && digit.held.dim < 0);
        };
        const auto times = [&](Use Digit::*own, Use Digit::*other, const auto& free) {
            Index product = times_;
            for (const Digit& digit : digits) {
                if (!free(digit) || used(digit.*own)) continue;
                // Devices that hold the same are one; those that want the same are many.
                if (moves_ && (own == &Digit::held || !used(digit.*other))) continue;
                product *= digit.size;
            }
            return product;
        };
        const auto received = [&](const auto& free) {
            return Product(digits, dimensions_, &Digit::wanted, &Digit::held, times(&Digit::held, &Digit::wanted, free),
                           free);
        };
        const auto sent = [&](const auto& free) {
            return Product(digits, dimensions_, &Digit::held, &Digit::wanted, times(&Digit::wanted, &Digit::held, free),
                           free);
        };
        if (level == 0) found_.push_back(received(inside));
        found_.push_back(received(within));
        Level made{sent(within), sent(near), 1, 1, {}, {}, false};
        made.shared = level > 0 && machine_.levels[level].shared;
        for (const Digit& digit : digits) {
            if (made.shared && digit.level >= level) made.blocks.push_back(digit);
            if (!moves_ || digit.held.dim >= 0 || digit.wanted.dim < 0 || digit.level > level) continue;
            made.sharers *= digit.size;
            if (digit.level < level) made.sharers_inside *= digit.size;
            made.replicas.push_back(digit);
        }
        levels_.push_back(std::move(made));
    }

    // The busiest device's elements, or the busiest block's, and the most peers.
    [[nodiscard]] std::pair<Index, Index> count(std::size_t number, Index low_devices) const {
        const Level& level = levels_[number];
        Index busiest = 0;
        Index peers = 0;
        std::vector<Index> in;
        std::vector<Index> out;
        Index blocks = 1;
        for (const Digit& digit : level.blocks) blocks *= digit.size;
        if (level.shared) {
            in.resize(static_cast<std::size_t>(blocks));
            out.resize(static_cast<std::size_t>(blocks));
        }
        for (Index position = 0; position < devices_; ++position) {
            const auto low = static_cast<std::size_t>(position % low_devices);
            const auto high = static_cast<std::size_t>(position / low_devices);
            const Count found = found_[number + 1].at(low, high);
            const Count found_inside = found_[number].at(low, high);
            const Index received = found.elements - found_inside.elements;
            const Index wanted = level.asked.at(low, high).elements - level.asked_inside.at(low, high).elements;
            const Index part = ceil_divide(wanted, level.sharers);
            peers = std::max(peers, found.tiles - found_inside.tiles);
            if (!level.shared) {
                busiest = std::max({busiest, received, part});
                continue;
            }
            Index block = 0;
            for (const Digit& digit : level.blocks) block = block * digit.size + position / digit.stride % digit.size;
            in[static_cast<std::size_t>(block)] += received;
            // The first of its holders serve for all in the block.
            const bool first = std::ranges::all_of(
                level.replicas, [&](const Digit& digit) { return position / digit.stride % digit.size == 0; });
            if (first) out[static_cast<std::size_t>(block)] += std::min(wanted, part * level.sharers_inside);
        }
        for (const auto* sums : {&in, &out})
            for (const Index sum : *sums) busiest = std::max(busiest, sum);
        return {busiest, peers};
    }

    const Machine& machine_;
    const Index devices_;
    bool moves_ = false;
    bool replicated_ = false;
    bool fits_ = true;
    Index one_in_ = 1;
    Index times_ = 1;
    std::vector<Digit> digits_;
    std::vector<Dimension> dimensions_;
    std::vector<Product> found_;  // of its tile a device finds inside level 0, 1, ..., and within the last
    std::vector<Level> levels_;
};

}  // namespace

std::optional<Traffic> carried_by_digits(const Layout& before, const Step& step, const Move& move,
                                         const Machine& machine, const NetworkDigits& network) {
    assert(same_order(before.mesh, step.layout.mesh));
    const Index tiles = saturating_add(tile_elements(before), tile_elements(step.layout));
    const bool small = saturating_multiply(saturating_multiply(2, tiles), device_count(before)) < index_max;
    if (!network.exact() || !small || device_count(before) > devices_max) return std::nullopt;
    ByDigits counts(before, step, move, machine, network);
    if (!counts.fits() || (counts.replicated() && step.kind == StepKind::permute)) return std::nullopt;
    Traffic traffic = counts.count();
    if (!counts.replicated()) return traffic;
    spread_messages(network, move.group, move.group_size, move.messages,
                    {traffic.elements, traffic.pair, traffic.messages});
    return traffic;
}

}  // namespace reshard
