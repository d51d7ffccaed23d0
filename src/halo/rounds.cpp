#include "src/halo/rounds.hpp"

#include <algorithm>

#include "src/base/try.hpp"

namespace reshard {

namespace {

// In the dimensions of earlier rounds a box has all distinct cells of the rank. Its peers in this round have the same
// ones, since they differ from it only in later dimensions.
void widen(std::vector<Transfer>& transfers, const HaloMove& move, const HaloRound& round, Index rank) {
    if (transfers.empty() || std::ranges::count(round.complete, 1) == 0) return;
    const Tile distinct = distinct_cells(move.target, rank);
    for (Transfer& one : transfers)
        for (std::size_t k = 0; k < one.box.size(); ++k)
            if (round.complete[k] != 0) one.box[k] = distinct[k].intervals.front();
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

std::vector<Transfer> round_receives(const HaloMove& move, const HaloRound& round, Index rank, const Wrap& wrap) {
    std::vector<Transfer> receives = wanted_receives(owners_of(move), wanted_in(move, round), rank, wrap);
    const bool unmoved = std::ranges::all_of(wrap, [](Index one) { return one == 0; });
    if (!move.source && unmoved) std::erase_if(receives, [&](const Transfer& one) { return one.peer == rank; });
    widen(receives, move, round, rank);
    return receives;
}

std::vector<Transfer> round_sends(const HaloMove& move, const HaloRound& round, Index rank, const Wrap& wrap) {
    std::vector<Transfer> sends = wanted_sends(owners_of(move), wanted_in(move, round), rank, wrap);
    widen(sends, move, round, rank);
    return sends;
}

}  // namespace reshard
