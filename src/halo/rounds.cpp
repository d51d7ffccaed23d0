#include "src/halo/rounds.hpp"

#include <algorithm>

#include "src/base/try.hpp"

namespace reshard {

namespace {

// In the dimensions of earlier rounds a box has all distinct cells of the rank. Its peers in this round have the same
// ones, since they differ from it only in later dimensions.
class Widen {
public:
    Widen(const HaloMove& move, const HaloRound& round, Index rank) : complete_(round.complete) {
        if (std::ranges::count(complete_, 1) > 0) distinct_ = distinct_cells(move.target, rank);
    }
    const Box& operator()(const Box& box) {
        if (distinct_.empty()) return box;
        wide_ = box;
        for (std::size_t k = 0; k < wide_.size(); ++k)
            if (complete_[k] != 0) wide_[k] = distinct_[k].intervals.front();
        return wide_;
    }

private:
    const std::vector<char>& complete_;
    Tile distinct_;
    Box wide_;
};

// A block in the middle has at most so many neighbours, and itself.
std::vector<Transfer> room_for_neighbours(const HaloRound& round) {
    std::size_t neighbours = 1;
    for (const Halo& halo : round.halos) neighbours *= halo.before + halo.after > 0 ? 3 : 1;
    std::vector<Transfer> transfers;
    transfers.reserve(neighbours);
    return transfers;
}

}  // namespace

HaloLayout source_arrays(const HaloMove& move) {
    HaloLayout arrays = move.source ? HaloLayout{*move.source, move.source_halos} : move.target;
    if (arrays.halos.empty()) arrays.halos.resize(arrays.owned.dims.size());
    return arrays;
}

Result<void> validate(const HaloMove& move, HaloWay way) {
    RESHARD_CHECK(validate(move.target));
    if (!move.source) return {};
    RESHARD_CHECK(validate(*move.source));
    RESHARD_CHECK(same_array(*move.source, move.target.owned));
    if (!move.source->unreduced.empty())
        return fail(Code::unsupported, "the source of a halo exchange has summands; reduce them first");
    if (!move.source_halos.empty()) RESHARD_CHECK(validate(source_arrays(move)));
    if (way == HaloWay::by_dimension)
        return fail(Code::unsupported, "a halo that is filled from another layout comes all at once");
    return {};
}

std::vector<HaloRound> rounds_of(const HaloMove& move, HaloWay way) {
    const HaloLayout& target = move.target;
    std::vector<char> complete(target.halos.size(), 0);
    std::vector<HaloRound> rounds;
    if (way == HaloWay::at_once) {
        rounds.push_back({target.halos, std::move(complete)});
        return rounds;
    }
    for (std::size_t dim = 0; dim < target.halos.size(); ++dim) {
        const Halo& halo = target.halos[dim];
        if (halo.before == 0 && halo.after == 0) continue;
        rounds.push_back({std::vector<Halo>(target.halos.size()), complete});
        rounds.back().halos[dim] = halo;
        complete[dim] = 1;
    }
    return rounds;
}

void each_receive(const HaloMove& move, const HaloRound& round, Index rank, const Wrap& wrap,
                  const TransferVisit& visit) {
    const bool in_place = !move.source && std::ranges::all_of(wrap, [](Index one) { return one == 0; });
    Widen widen(move, round, rank);
    each_wanted_receive(owners_of(move), wanted_in(move, round), rank, wrap, [&](Index peer, const Box& box) {
        if (!in_place || peer != rank) visit(peer, widen(box));
    });
}

void each_send(const HaloMove& move, const HaloRound& round, Index rank, const Wrap& wrap, const TransferVisit& visit) {
    Widen widen(move, round, rank);
    each_wanted_send(owners_of(move), wanted_in(move, round), rank, wrap,
                     [&](Index peer, const Box& box) { visit(peer, widen(box)); });
}

std::vector<Transfer> round_receives(const HaloMove& move, const HaloRound& round, Index rank, const Wrap& wrap) {
    std::vector<Transfer> receives = room_for_neighbours(round);
    each_receive(move, round, rank, wrap, [&](Index peer, const Box& box) { receives.push_back({peer, box}); });
    return receives;
}

std::vector<Transfer> round_sends(const HaloMove& move, const HaloRound& round, Index rank, const Wrap& wrap) {
    std::vector<Transfer> sends = room_for_neighbours(round);
    each_send(move, round, rank, wrap, [&](Index peer, const Box& box) { sends.push_back({peer, box}); });
    return sends;
}

}  // namespace reshard
