#include "src/price/carried_by_blocks.hpp"

#include <algorithm>

#include "src/plan/stripes.hpp"
#include "src/price/carried.hpp"
#include "src/price/tiles/tile_set.hpp"
#include "src/tables/step_kinds.hpp"

namespace reshard {

namespace {

constexpr Index devices_max = Index{1} << 22;

// Groups of devices that exchange nothing with each other. For a collective they are its groups. For an exchange,
// devices in different teams differ in summands or in team_atoms.
struct Teams {
    AtomList before;
    AtomList after;
    Index messages_max = index_max;  // that the typing rule counts, within its own teams
};

Teams teams_of(const Layout& before, const Step& step, const Move& move, const Network& network) {
    if (!crosses_groups(step.kind)) {
        const AtomList others = complement(move.group, device_count(before));
        return {others, others, move.messages};
    }
    Teams teams{before.unreduced, step.layout.unreduced};
    const AtomList apart = team_atoms(before, step.layout, network);
    if (apart == team_atoms(before, step.layout, {})) teams.messages_max = move.messages;
    for (AtomList* team : {&teams.before, &teams.after}) team->insert(team->end(), apart.begin(), apart.end());
    return teams;
}

std::vector<std::size_t> cut_dims(const Layout& before, const Layout& after) {
    std::vector<std::size_t> cut;
    for (std::size_t i = 0; i < before.dims.size(); ++i)
        if (!before.dims[i].atoms.empty() || !after.dims[i].atoms.empty()) cut.push_back(i);
    return cut;
}

// For the block around each device: the tiles before that devices in it want, and the tiles after that devices in it
// have.
struct Within {
    std::vector<Index> wanted;  // by place before
    std::vector<Index> found;   // by place after
    std::vector<Index> tiles;   // that it is found in
};

class ByBlocks {
public:
    ByBlocks(const Layout& before, const Step& step, const Move& move, const Machine& machine,
             std::span<const std::size_t> cut, Index messages_max, TileCodes held, TileCodes wanted)
        : machine_(machine),
          move_(move),
          messages_max_(messages_max),
          shares_(crosses_groups(step.kind)),
          kind_(step.kind),
          cut_(cut),
          held_(std::move(held)),
          wanted_(std::move(wanted)) {
        contacts_.reserve(before.dims.size());
        for (std::size_t i = 0; i < before.dims.size(); ++i) {
            contacts_.emplace_back(before.dims[i], step.layout.dims[i]);
            if (before.dims[i].atoms.empty() && step.layout.dims[i].atoms.empty()) whole_ *= before.dims[i].extent;
            most_ = saturating_multiply(most_, contacts_.back().most());
        }
        within_.wanted.resize(static_cast<std::size_t>(device_count(before)));
        within_.found.resize(static_cast<std::size_t>(device_count(step.layout)));
        within_.tiles.resize(within_.found.size());
        sent_.resize(within_.wanted.size());
        received_.resize(within_.found.size());
        shards_.resize(before.dims.size());
        for (auto* placed : {&holders_, &wanters_}) placed->reserve(64);
        for (auto* tiles : {&held_tiles_, &wanted_tiles_, &once_}) tiles->reserve(64);
    }

    Traffic count() {
        const std::size_t levels = machine_.levels.size();
        const std::vector<Index> none(levels);
        Traffic traffic{none, none, none};
        const Index world = 1 + std::max(held_.last_device(), wanted_.last_device());
        std::size_t last = 0;
        while (last + 1 < levels && machine_.levels[last].devices < world) ++last;
        held_.number(1);
        wanted_.number(1);
        count_own();
        for (std::size_t level = 0; level <= last; ++level) {
            messages_ = 0;
            reach_ = 1;
            if (level < last)
                count_blocks(machine_.levels[level].devices, inside(level));
            else
                count_rest(inside(level));
            const Index block = sharing_block(machine_, level);
            const Index busiest =
                std::max(busiest_block(held_, sent_, block), busiest_block(wanted_, received_, block));
            const bool sums = kind_ == StepKind::all_reduce;
            const Index times = rounds_of(kind_);
            const Index parts = sums ? move_.group_size : 1;
            traffic.elements[level] = ceil_divide(times * busiest, parts);
            traffic.pair[level] =
                std::min(traffic.elements[level], ceil_divide(saturating_multiply(times, most_), parts));
            const Index peers = std::min(messages_max_, saturating_multiply(messages_, reach_));
            traffic.messages[level] = times * std::max(messages_, peers);
        }
        return traffic;
    }

private:
    using Tile = TileSet::Tile;
    // A device by its place, and the code of its tile.
    struct Placed {
        Index code = 0;
        std::size_t place = 0;
    };

    [[nodiscard]] Index inside(std::size_t level) const { return level == 0 ? 1 : machine_.levels[level - 1].devices; }

    // The shards of the tile at this place, by dimension.
    std::span<const Index> read(const TileCodes& codes, std::size_t place) {
        for (std::size_t i = 0; i < cut_.size(); ++i) shards_[cut_[i]] = codes.shard(i, place);
        return shards_;
    }

    // Counts the elements that a device already has. They are not sent.
    void count_own() {
        for (std::size_t i = 0, j = 0; i < held_.devices() && j < wanted_.devices();) {
            if (held_.device(i) != wanted_.device(j)) {
                if (held_.device(i) < wanted_.device(j))
                    i = held_.place_from(i, wanted_.device(j));
                else
                    j = wanted_.place_from(j, held_.device(i));
                continue;
            }
            if (held_.team(i) == wanted_.team(j)) {
                Index own = whole_;
                for (std::size_t k = 0; k < cut_.size() && own > 0; ++k)
                    own *= contacts_[cut_[k]].held(wanted_.shard(k, j)).met(held_.shard(k, i));
                within_.wanted[i] = within_.found[j] = own;
                within_.tiles[j] = own > 0 ? 1 : 0;
            }
            ++i;
            ++j;
        }
    }

    // Blocks with devices of one end only carry nothing.
    void count_blocks(Index block, Index inside) {
        held_.number(block);
        wanted_.number(block);
        for (std::size_t i = 0, j = 0; i < held_.devices() && j < wanted_.devices();) {
            const Index one = held_.device(i) / block;
            const Index other = wanted_.device(j) / block;
            if (one < other) {
                i = held_.place_from(i, other * block);
            } else if (other < one) {
                j = wanted_.place_from(j, one * block);
            } else {
                const std::size_t i_end = held_.place_from(i, (one + 1) * block);
                const std::size_t j_end = wanted_.place_from(j, (one + 1) * block);
                gather(held_, i, i_end, holders_, held_tiles_);
                gather(wanted_, j, j_end, wanters_, wanted_tiles_);
                count_block(inside);
                i = i_end;
                j = j_end;
            }
        }
    }

    // The devices of a block by their tiles.
    static void gather(const TileCodes& codes, std::size_t begin, std::size_t end, std::vector<Placed>& placed,
                       std::vector<Tile>& tiles) {
        placed.clear();
        tiles.clear();
        for (std::size_t place = begin; place < end; ++place) placed.push_back({codes.codes()[place], place});
        const auto order = [](const Placed& one) { return std::pair(one.code, one.place); };
        if (!std::ranges::is_sorted(placed, {}, &Placed::code)) std::ranges::sort(placed, {}, order);
        for (const Placed& one : placed) {
            if (tiles.empty() || tiles.back().code != one.code) tiles.push_back({one.code, 0});
            ++tiles.back().times;
        }
    }

    void count_block(Index inside) {
        // In an exchange the holders of a tile count as one.
        once_ = held_tiles_;
        if (shares_)
            for (Tile& tile : once_) tile.times = 1;
        have_.assign(held_, once_);
        std::size_t at = 0;
        for (const Tile& tile : wanted_tiles_) {
            const std::size_t first = wanters_[at].place;
            const TileCount met = have_.met(wanted_.team(first), read(wanted_, first));
            for (Index i = 0; i < tile.times; ++i) receive(wanters_[at++].place, met.elements * whole_, met.tiles);
        }
        want_.assign(wanted_, wanted_tiles_);
        at = 0;
        for (const Tile& tile : held_tiles_) {
            const std::size_t first = holders_[at].place;
            const TileCount met = want_.met(held_.team(first), read(held_, first));
            const auto times = static_cast<std::size_t>(tile.times);
            send(std::span(holders_).subspan(at, times), met.elements * whole_, inside);
            at += times;
        }
    }

    void receive(std::size_t place, Index found, Index tiles) {
        received_[place] = found - within_.found[place];
        messages_ = std::max(messages_, tiles - within_.tiles[place]);
        within_.found[place] = found;
        within_.tiles[place] = tiles;
    }

    // The holders of a tile in a block share what is wanted there and not found in a block inside it.
    void send(std::span<const Placed> holders, Index wanted, Index inside) {
        if (!shares_ || holders.size() == 1) {
            for (const Placed& one : holders) {
                sent_[one.place] = wanted - within_.wanted[one.place];
                within_.wanted[one.place] = wanted;
            }
            return;
        }
        Index rest = wanted;
        Index block = -1;
        for (const Placed& one : holders) {
            const Index here = held_.device(one.place) / inside;
            if (here != std::exchange(block, here)) rest -= within_.wanted[one.place];
            within_.wanted[one.place] = wanted;
        }
        share(rest, std::ssize(holders));
        Index left = rest;
        for (const Placed& one : holders) left -= sent_[one.place] = std::min(left, part_);
    }

    // Sets the part of each of so many holders, and how many of them one device is served by.
    void share(Index elements, Index holders) {
        part_ = ceil_divide(elements, holders);
        if (elements == 0) return;
        const bool whole = elements % holders == 0 && (part_ % most_ == 0 || most_ % part_ == 0);
        reach_ = std::max(reach_, std::min(holders, ceil_divide(most_, part_) + (whole ? 0 : 1)));
    }

    // Elements that no smaller block has are elsewhere.
    void count_rest(Index inside) {
        const Index members = move_.group_size;
        const bool sums = reduces(kind_);
        for (std::size_t place = 0; place < wanted_.devices(); ++place) {
            TileCount all{whole_, 1};
            for (std::size_t i = 0; i < cut_.size(); ++i) {
                const Contact& contact = contacts_[cut_[i]];
                const Index shard = wanted_.shard(i, place);
                all.elements *= contact.wanted_size(shard);
                all.tiles *= contact.held(shard).count();
            }
            receive(place, sums ? members * all.elements : all.elements, sums ? members * all.tiles : all.tiles);
        }
        const bool copies = kind_ == StepKind::all_reduce || kind_ == StepKind::all_gather;
        const Index wanters = shares_ ? wanted_.replicas() : copies ? members : 1;
        sort_holders();
        for (std::size_t begin = 0, end = 0; begin < holders_.size(); begin = end) {
            const Index code = holders_[begin].code;
            while (end < holders_.size() && holders_[end].code == code) ++end;
            Index elements = whole_;
            for (std::size_t i = 0; i < cut_.size(); ++i) {
                elements *= contacts_[cut_[i]].held_size(held_.shard(i, holders_[begin].place));
            }
            send(std::span(holders_).subspan(begin, end - begin), wanters * elements, inside);
        }
    }

    // All devices by their tiles: codes are no more than devices where holders share.
    void sort_holders() {
        holders_.clear();
        for (std::size_t place = 0; place < held_.devices(); ++place) holders_.push_back({held_.codes()[place], place});
        if (!shares_ || held_.replicas() == 1) return;
        std::vector<std::size_t> ends(held_.devices() + 1);
        for (const Index code : held_.codes()) ++ends[static_cast<std::size_t>(code) + 1];
        for (std::size_t i = 1; i < ends.size(); ++i) ends[i] += ends[i - 1];
        for (std::size_t place = 0; place < held_.devices(); ++place) {
            const Index code = held_.codes()[place];
            holders_[ends[static_cast<std::size_t>(code)]++] = {code, place};
        }
    }

    // The most that a block of devices has together.
    static Index busiest_block(const TileCodes& codes, const std::vector<Index>& values, Index block) {
        if (block == 1) return *std::ranges::max_element(values);
        Index most = 0;
        Index sum = 0;
        Index end = 0;  // of the block at hand
        for (std::size_t place = 0; place < values.size(); ++place) {
            if (codes.device(place) >= end) {
                sum = 0;
                end = (codes.device(place) / block + 1) * block;
            }
            most = std::max(most, sum += values[place]);
        }
        return most;
    }

    const Machine& machine_;
    const Move& move_;
    const Index messages_max_;
    const bool shares_;  // holders of one tile
    const StepKind kind_;
    const std::span<const std::size_t> cut_;  // dimensions that either end cuts
    TileCodes held_;
    TileCodes wanted_;
    std::vector<Contact> contacts_;  // by dimension
    Index whole_ = 1;                // indices of the dimensions that nobody cuts
    Index most_ = 1;                 // elements in common, of any two tiles
    TileSet have_{contacts_, true};
    TileSet want_{contacts_, false};
    Within within_;
    std::vector<Index> sent_;      // over the level at hand, by place before
    std::vector<Index> received_;  // by place after
    Index messages_ = 0;           // tiles that a device finds over this level, at most
    Index reach_ = 1;              // holders of one of them that serve it, at most
    Index part_ = 0;               // what each of the holders at hand serves
    std::vector<Index> shards_;    // of the tile at hand, by dimension
    std::vector<Placed> holders_;
    std::vector<Placed> wanters_;
    std::vector<Tile> held_tiles_;
    std::vector<Tile> wanted_tiles_;
    std::vector<Tile> once_;
};

}  // namespace

std::optional<Traffic> carried_by_blocks(const Layout& before, const Step& step, const Move& move,
                                         const Machine& machine) {
    const Layout& after = step.layout;
    const Index devices = std::max(device_count(before), device_count(after));
    const Index tiles = saturating_add(tile_elements(before), tile_elements(after));
    const bool small = saturating_multiply(saturating_multiply(2, tiles), devices) < index_max;
    const Network network = network_of(machine, std::max(world_size(before.mesh), world_size(after.mesh)));
    if (!small || devices > devices_max ||
        (step.kind == StepKind::permute && depends_on_network(before, step, network)))
        return std::nullopt;
    const Teams teams = teams_of(before, step, move, network);
    const std::vector<std::size_t> cut = cut_dims(before, after);
    auto held = TileCodes::make(before, teams.before, cut);
    auto wanted = TileCodes::make(after, teams.after, cut);
    if (!held || !wanted) return std::nullopt;
    return ByBlocks(before, step, move, machine, cut, teams.messages_max, *std::move(held), *std::move(wanted)).count();
}

}  // namespace reshard
