#include "src/price/carried.hpp"

#include <algorithm>
#include <utility>

#include "src/plan/overlap.hpp"
#include "src/plan/stripes.hpp"
#include "src/tables/step_kinds.hpp"

namespace reshard {

namespace {

// The elements that each device sends and receives over each level.
class Tally {
public:
    Tally(const std::vector<const Mesh*>& meshes, const Machine& machine)
        : machine_(machine), levels_(machine.levels.size()) {
        for (const Mesh* mesh : meshes)
            for (Index position = 0; position < device_count(*mesh); ++position)
                devices_.push_back(device_at(*mesh, position));
        std::ranges::sort(devices_);
        devices_.erase(std::unique(devices_.begin(), devices_.end()), devices_.end());
        in_order_ = devices_.back() + 1 == std::ssize(devices_);
        for (auto* counts : {&in_, &out_, &peers_, &all_in_, &all_out_}) counts->resize(devices_.size() * levels_);
        pair_.resize(levels_);
    }

    /// All that goes from one device to another.
    void add(Index from, Index to, Index elements) {
        if (from == to || elements == 0) return;
        std::size_t level = 0;
        while (level + 1 < levels_ && from / machine_.levels[level].devices != to / machine_.levels[level].devices)
            ++level;
        out_[place(from) * levels_ + level] += elements;
        const std::size_t at = place(to) * levels_ + level;
        in_[at] += elements;
        ++peers_[at];
        pair_[level] = std::max(pair_[level], elements);
    }

    /// Each element counts as one in so many.
    [[nodiscard]] Traffic most(Index one_in) const {
        Traffic traffic;
        for (std::size_t level = 0; level < levels_; ++level) {
            Index messages = 0;
            for (std::size_t i = 0; i < devices_.size(); ++i)
                messages = std::max(messages, peers_[i * levels_ + level]);
            const Index busiest = std::max(busiest_block(in_, level), busiest_block(out_, level));
            traffic.elements.push_back(ceil_divide(busiest, one_in));
            traffic.pair.push_back(ceil_divide(pair_[level], one_in));
            traffic.messages.push_back(messages);
        }
        return traffic;
    }

    /// visit(load) for each device and level with something to send or receive. Each element counts as one in so many.
    void each(Index one_in, const std::function<void(const DeviceLoad&)>& visit) const {
        for (std::size_t i = 0; i < devices_.size(); ++i)
            for (std::size_t level = 0; level < levels_; ++level) {
                const std::size_t at = i * levels_ + level;
                if (in_[at] == 0 && out_[at] == 0) continue;
                visit({devices_[i], level, ceil_divide(in_[at], one_in), ceil_divide(out_[at], one_in), peers_[at],
                       ceil_divide(pair_[level], one_in)});
            }
    }

    /// Ends a step. In it each element counts as one in `one_in`.
    void end_step(Index one_in) {
        for (const auto& [step, all] : {std::pair(&in_, &all_in_), std::pair(&out_, &all_out_)})
            for (std::size_t i = 0; i < step->size(); ++i)
                (*all)[i] = saturating_add((*all)[i], ceil_divide(std::exchange((*step)[i], 0), one_in));
    }

    /// By level, of the busiest, in all steps that have ended.
    [[nodiscard]] std::vector<Index> most_in_all() const {
        std::vector<Index> most;
        for (std::size_t level = 0; level < levels_; ++level)
            most.push_back(std::max(busiest_block(all_in_, level), busiest_block(all_out_, level)));
        return most;
    }

private:
    [[nodiscard]] std::size_t place(Index device) const {
        if (in_order_) return static_cast<std::size_t>(device);
        return static_cast<std::size_t>(std::ranges::lower_bound(devices_, device) - devices_.begin());
    }

    [[nodiscard]] Index busiest_block(const std::vector<Index>& counts, std::size_t level) const {
        const Index block = sharing_block(machine_, level);
        Index most = 0;
        Index sum = 0;
        for (std::size_t i = 0; i < devices_.size(); ++i) {
            if (i > 0 && devices_[i] / block != devices_[i - 1] / block) sum = 0;
            sum = saturating_add(sum, counts[i * levels_ + level]);
            most = std::max(most, sum);
        }
        return most;
    }

    const Machine& machine_;
    const std::size_t levels_;
    std::vector<Index> devices_;  // ascending
    bool in_order_ = false;
    std::vector<Index> in_;
    std::vector<Index> out_;
    std::vector<Index> peers_;
    std::vector<Index> pair_;
    std::vector<Index> all_in_;  // of the steps that have ended
    std::vector<Index> all_out_;
};

// The positions of a layout as sums of four terms: shard numbers, the summand, the team and the replicas.
struct Positions {
    Positions(const Layout& layout, const AtomList& team)
        : mesh(layout.mesh), summands(values(layout.unreduced)), teams(values(team)) {
        for (const Dim& dim : layout.dims) shards.push_back(values(dim.atoms));
        AtomList fixed = used_atoms(layout);
        fixed.insert(fixed.end(), team.begin(), team.end());
        replicas = group_of(complement(fixed, device_count(layout)), 0);
    }

    static std::vector<Index> values(const AtomList& atoms) {
        std::vector<Index> added;
        for (Index value = 0; value < combinations(atoms); ++value) added.push_back(with_value(atoms, 0, value));
        return added;
    }

    /// Calls visit(device) for each replica at a position.
    template <class Visit>
    void each(Index position, const Visit& visit) const {
        for (const Index replica : replicas) visit(device_at(mesh, position + replica));
    }

    [[nodiscard]] std::vector<Index> devices(Index position) const {
        std::vector<Index> all;
        each(position, [&](Index device) { all.push_back(device); });
        std::ranges::sort(all);
        return all;
    }

    const Mesh& mesh;
    std::vector<std::vector<Index>> shards;
    std::vector<Index> summands;
    std::vector<Index> teams;
    std::vector<Index> replicas;
};

// An exchange or a permute, source tile by source tile.
class Moved {
public:
    Moved(const Layout& before, const Step& step, const Network& network, Tally& tally)
        : permutes_(step.kind == StepKind::permute),
          network_(network),
          team_(team_atoms(before, step.layout, network)),
          held_(before, team_),
          wanted_(step.layout, team_),
          tally_(tally) {
        for (std::size_t i = 0; i < before.dims.size(); ++i) {
            const Overlap overlap(before.dims[i], step.layout.dims[i]);
            auto& touched = touched_.emplace_back(held_.shards[i].size());
            auto& sizes = sizes_.emplace_back();
            for (std::size_t shard = 0; shard < touched.size(); ++shard) {
                sizes.push_back(overlap.held(static_cast<Index>(shard)));
                for (std::size_t other = 0; other < wanted_.shards[i].size() && sizes.back() > 0; ++other)
                    if (const Index common = overlap.common(static_cast<Index>(shard), static_cast<Index>(other)))
                        touched[shard].push_back({wanted_.shards[i][other], common});
            }
        }
    }

    void count() {
        shard_.assign(touched_.size(), 0);
        count_tiles(0, 0, 0, 1);
    }

private:
    struct Touched {
        Index position = 0;
        Index elements = 0;
    };

    // All numbers of tiles from dimension `dim` on.
    void count_tiles(std::size_t dim, Index held_at, Index wanted_at, Index elements) {
        if (elements == 0) return;
        if (dim < touched_.size()) {
            for (shard_[dim] = 0; shard_[dim] < touched_[dim].size(); ++shard_[dim]) {
                const std::size_t at = shard_[dim];
                const Index same = permutes_ ? wanted_.shards[dim][at] : 0;
                count_tiles(dim + 1, held_at + held_.shards[dim][at], wanted_at + same, elements * sizes_[dim][at]);
            }
            return;
        }
        for (std::size_t summand = 0; summand < held_.summands.size(); ++summand)
            for (const Index team : held_.teams) {
                const Index held = held_at + held_.summands[summand] + team;
                const Index wanted = wanted_at + wanted_.summands[summand] + team;
                if (permutes_)
                    for (const auto& [from, to] : partners(network_, held_.devices(held), wanted_.devices(wanted)))
                        tally_.add(from, to, elements);
                else
                    serve(held_.devices(held), wanted);
            }
    }

    void serve(std::vector<Index> holders, Index wanted) {
        demands_.clear();
        add_demands(0, wanted, 1, holders);
        if (demands_.empty()) return;
        if (holders.size() == 1) {
            for (const Demand& demand : demands_) tally_.add(holders.front(), demand.device, demand.elements);
            return;
        }
        std::ranges::sort(demands_, {}, &Demand::device);
        for (const Stripes& stripes : stripes_of(network_, std::move(holders), demands_))
            for (const Demand& demand : stripes.demands)
                stripes.serve(demand, [&](std::size_t place, Index begin, Index end) {
                    tally_.add(stripes.holders[place], demand.device, end - begin);
                });
    }

    // Adds the devices that want a part of the tile, from dimension `dim` on.
    void add_demands(std::size_t dim, Index wanted, Index elements, const std::vector<Index>& holders) {
        if (dim < touched_.size()) {
            for (const Touched& one : touched_[dim][shard_[dim]])
                add_demands(dim + 1, wanted + one.position, elements * one.elements, holders);
            return;
        }
        wanted_.each(wanted, [&](Index device) {
            if (!std::ranges::binary_search(holders, device)) demands_.push_back({device, 0, elements});
        });
    }

    const bool permutes_;
    const Network& network_;
    const AtomList team_;
    const Positions held_;
    const Positions wanted_;
    Tally& tally_;
    std::vector<std::vector<std::vector<Touched>>> touched_;  // by dimension and shard
    std::vector<std::vector<Index>> sizes_;
    std::vector<std::size_t> shard_;
    std::vector<Demand> demands_;
};

// A collective, group by group: each member has something for each other.
void count_groups(const Layout& before, const Step& step, const AtomList& group, Tally& tally) {
    const Layout& after = step.layout;
    std::vector<Overlap> overlaps;
    for (std::size_t i = 0; i < before.dims.size(); ++i) overlaps.emplace_back(before.dims[i], after.dims[i]);
    const auto numbers = [](const Layout& layout, Index position) {
        std::vector<Index> shards;
        for (const Dim& dim : layout.dims) shards.push_back(value_of(dim.atoms, position));
        return shards;
    };
    const Index copies = rounds_of(step.kind);
    for (const Index first : group_of(complement(group, device_count(before)), 0)) {
        const std::vector<Index> members = group_of(group, first);
        std::vector<std::vector<Index>> held, wanted;
        for (const Index member : members) {
            held.push_back(numbers(before, member));
            wanted.push_back(numbers(after, member));
        }
        for (std::size_t p = 0; p < members.size(); ++p)
            for (std::size_t q = 0; q < members.size(); ++q) {
                Index elements = copies;
                for (std::size_t i = 0; i < overlaps.size(); ++i)
                    elements *= overlaps[i].common(held[p][i], wanted[q][i]);
                tally.add(device_at(before.mesh, members[p]), device_at(before.mesh, members[q]), elements);
            }
    }
}

void count_step(const Layout& before, const Step& step, const Move& move, const Network& network, Tally& tally) {
    if (crosses_groups(step.kind))
        Moved(before, step, network, tally).count();
    else if (!is_local(step.kind))
        count_groups(before, step, move.group, tally);
}

// In how many parts a step counts an element.
Index parts_of(const Step& step, const Move& move) { return step.kind == StepKind::all_reduce ? move.group_size : 1; }

}  // namespace

Traffic carried(const Layout& before, const Step& step, const Move& move, const Machine& machine,
                const Network& network) {
    Tally tally({&before.mesh, &step.layout.mesh}, machine);
    count_step(before, step, move, network, tally);
    Traffic traffic = tally.most(parts_of(step, move));
    for (Index& messages : traffic.messages) messages *= rounds_of(step.kind);
    return traffic;
}

void each_load(const Layout& before, const Step& step, const Move& move, const Machine& machine, const Network& network,
               const std::function<void(const DeviceLoad&)>& visit) {
    Tally tally({&before.mesh, &step.layout.mesh}, machine);
    count_step(before, step, move, network, tally);
    const Index rounds = rounds_of(step.kind);
    tally.each(parts_of(step, move), [&](DeviceLoad load) {
        load.messages *= rounds;
        visit(load);
    });
}

std::vector<Index> carried_in_all(const Plan& plan, std::span<const Move> moves, const Machine& machine) {
    std::vector<const Mesh*> meshes = {&plan.source.mesh};
    for (const Step& step : plan.steps) meshes.push_back(&step.layout.mesh);
    Tally tally(meshes, machine);
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        count_step(layout_before(plan, i), plan.steps[i], moves[i], plan.network, tally);
        tally.end_step(parts_of(plan.steps[i], moves[i]));
    }
    return tally.most_in_all();
}

Index received_by(Index device, const Layout& before, const Step& step, const Move& move) {
    const Layout& after = step.layout;
    if (!position_of(after.mesh, device)) return 0;
    if (move.uniform || move.received == 0) return move.received;
    const Tile wanted = tile(after, device);
    if (step.kind == StepKind::reduce_scatter) return count(wanted) * (move.group_size - 1);
    if (step.kind == StepKind::all_reduce)
        return scale_up(saturating_multiply(2, count(wanted)), move.group_size - 1, move.group_size);
    const bool same = summand(before, device) == summand(after, device);
    return count(wanted) - (same ? count(intersect(wanted, tile(before, device))) : 0);
}

Index sent_at_most(const Layout& before, const Step& step, const Move& move, const Network& network) {
    if (network.empty() || move.received == 0 || step.kind != StepKind::exchange ||
        !depends_on_network(before, step, network))
        return move.sent;
    Index wanting = device_count(step.layout);
    for (const Dim& dim : step.layout.dims) wanting /= shard_count(dim);
    const Index all = saturating_multiply(tile_elements(before), wanting / summand_count(step.layout));
    constexpr Index devices_counted_max = 512;  // a plan is judged many times in a search
    if (std::max(device_count(before), device_count(step.layout)) > devices_counted_max) return all;
    Machine machine;
    machine.levels = {Level{}};
    Index most = 0;
    each_load(before, step, move, machine, network, [&](const DeviceLoad& load) { most = std::max(most, load.sent); });
    return std::max(most, move.sent);
}

}  // namespace reshard
