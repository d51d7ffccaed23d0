#include "synth/overlap/cuts.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <optional>

namespace reshard {
namespace {

// Percent of the predicted work that the real work may take.
constexpr std::array<Index, 2> work_percents = {80, 130};
constexpr Index steadiness = 50;  // 1/50 of the least time may be given up for steadiness
// A piece may cost 1/400 of the time beyond its price: caches get colder, and it is prepared by itself.
constexpr Index of_a_piece = 400;

// When both are done with the pieces so far, and the way to this state.
struct Progress {
    Index transfer = 0;
    Index work = 0;
    bool begun = false;
    std::size_t place = 0;   // where the piece before ended
    std::size_t number = 0;  // of the state there
};

// The times of one piece, in picoseconds.
struct PassTimes {
    Index alone = 0;   // its transfer if no other piece is under way
    Index behind = 0;  // the same behind another piece
    Index work = 0;
};

// Work that begins while a transfer goes on until `busy`.
Index work_ends(Index begin, Index work, Index busy, Index slowed_percent) {
    if (begin >= busy) return saturating_add(begin, work);
    const Index room = scale_up(busy - begin, 100, slowed_percent);
    if (work > room) return saturating_add(busy, work - room);
    return saturating_add(begin, scale_up(work, slowed_percent, 100));
}

// When nothing has passed yet: work that waits for no piece goes on beside transfers that take `rest`.
Progress begin(const OverlapTimes& times, Index rest) {
    return {.work = work_ends(0, times.before, rest, times.slowed_percent)};
}

// One piece more. The transfers of those behind it take `rest`.
void pass(const OverlapTimes& times, const PassTimes& piece, Index rest, Progress& state) {
    const Index behind = saturating_add(state.transfer, state.begun ? piece.behind : piece.alone);
    if (times.work_first) {
        state.work = work_ends(state.work, piece.work, state.transfer, times.slowed_percent);
        state.transfer = std::max(behind, saturating_add(state.work, piece.alone));
    } else {
        state.transfer = behind;
        state.work = work_ends(std::max(state.work, state.transfer), piece.work, saturating_add(state.transfer, rest),
                               times.slowed_percent);
    }
    state.begun = true;
}

Index done(const Progress& state) { return std::max(state.transfer, state.work); }

// The time until both are done with pieces that pass in this order.
Index time_of(const OverlapTimes& times, const std::vector<PassTimes>& pieces, const std::vector<std::size_t>& order) {
    Index rest = 0;
    for (const PassTimes& piece : pieces) rest = saturating_add(rest, piece.behind);
    Progress progress = begin(times, rest);
    for (const std::size_t piece : order) pass(times, pieces[piece], rest -= pieces[piece].behind, progress);
    return done(progress);
}

// The transfer time of the piece [begin, end).
Index transfer_of(const PieceTime& time, Index extent, Index begin, Index end) {
    return time.once + scale_up(time.whole, end, extent) - scale_up(time.whole, begin, extent);
}

// Pieces with ends at some places, and the states that no other one beats in both times.
class CutTable {
    static constexpr Index states_apart = 1 << 10;  // parts of the whole time; states that differ by less are one

public:
    CutTable(const OverlapTimes& times, Index extent, Index places) : times_(times), extent_(extent) {
        for (Index i = 0; i <= places; ++i) ends_.push_back(scale_up(extent, i, places));
        ends_.erase(std::unique(ends_.begin(), ends_.end()), ends_.end());
        work_.assign(ends_.size() * ends_.size(), 0);
        for (std::size_t begin = 0; begin < ends_.size(); ++begin) {
            for (std::size_t end = begin + 1; end < ends_.size(); ++end)
                work_[begin * ends_.size() + end] = times.work(ends_[begin], ends_[end]);
        }
        // Work that is slowed ends at a picosecond of its own for nearly every way to cut.
        tolerance_ = saturating_add(transfer_of(times.run.alone, extent, 0, extent), whole_work()) / states_apart;
        find_least_work();
    }

    /// The same where work takes so many percent.
    [[nodiscard]] CutTable with_work(Index percent) const {
        CutTable other = *this;
        for (Index& work : other.work_) work = scale_up(work, percent, 100);
        other.find_least_work();
        return other;
    }

    [[nodiscard]] Index most_pieces() const { return static_cast<Index>(ends_.size()) - 1; }
    [[nodiscard]] Index whole_work() const { return work_[ends_.size() - 1]; }

    // Johnson, "Optimal two- and three-stage production schedules with setup times included", 1954.
    void order(Cuts& cuts) const {
        const std::vector<PassTimes> pieces = pieces_of(cuts);
        const auto first = [&](std::size_t i) { return times_.work_first ? pieces[i].work : pieces[i].behind; };
        const auto second = [&](std::size_t i) { return times_.work_first ? pieces[i].behind : pieces[i].work; };
        std::vector<std::size_t> order = cuts.order;
        const auto falling =
            std::ranges::stable_partition(order, [&](std::size_t i) { return first(i) < second(i); }).begin();
        std::ranges::stable_sort(order.begin(), falling, {}, first);
        std::ranges::stable_sort(falling, order.end(), std::ranges::greater{}, second);
        const Index time = reshard::time_of(times_, pieces, order);
        if (time < cuts.time) {
            cuts.order = std::move(order);
            cuts.time = time;
        }
    }

    [[nodiscard]] Index time_of(const Cuts& cuts) const {
        return reshard::time_of(times_, pieces_of(cuts), cuts.order);
    }

    // pre: 1 <= count <= most_pieces().
    [[nodiscard]] Cuts equal(Index count) const {
        Cuts cuts;
        for (Index k = 1; k <= count; ++k) {
            cuts.ends.push_back(ends_[static_cast<std::size_t>(most_pieces() * k / count)]);
            cuts.order.push_back(static_cast<std::size_t>(k - 1));
        }
        return cuts;
    }

    // Equal ones, and the best of each number of pieces that take within a fiftieth of the best that is known by then,
    // in their best order.
    [[nodiscard]] std::vector<Cuts> all(Index pieces_max) const {
        std::vector<Cuts> all;
        Index least = index_max;
        const auto add = [&](Cuts cuts) {
            cuts.time = time_of(cuts);
            if (cuts.ends.size() > 1) order(cuts);
            least = std::min(least, cuts.time);
            all.push_back(std::move(cuts));
        };
        const Index most = std::min(pieces_max, most_pieces());
        for (Index count = 1; count <= most; ++count) add(equal(count));
        for (Index count = 2; count <= most; ++count) {
            if (auto cuts = best(count, saturating_add(least, least / steadiness))) add(std::move(*cuts));
        }
        return all;
    }

private:
    // The best ascending ones of exactly so many, where they take `limit` at most. pre: 1 <= count <= most_pieces().
    [[nodiscard]] std::optional<Cuts> best(Index count, Index limit) const {
        const std::size_t places = ends_.size();
        const PieceTime& behind = longest(times_.run.behind, count);
        std::vector<std::vector<std::vector<Progress>>> rows(1, std::vector<std::vector<Progress>>(places));
        rows[0][0].push_back(begin(times_, saturating_add(saturating_multiply(count, behind.once), behind.whole)));
        for (Index k = 1; k <= count; ++k) {
            const auto& before = rows.back();
            std::vector<std::vector<Progress>> row(places);
            const std::size_t left = static_cast<std::size_t>(count - k);  // pieces that need a place each
            const std::size_t first = left == 0 ? places - 1 : static_cast<std::size_t>(k);
            for (std::size_t end = first; end + left < places; ++end) {
                const Index rest = saturating_multiply(static_cast<Index>(left), behind.once) +
                                   (behind.whole - scale_up(behind.whole, ends_[end], extent_));
                for (std::size_t begin = 0; begin < end; ++begin) {
                    for (std::size_t i = 0; i < before[begin].size(); ++i) {
                        Progress state = before[begin][i];
                        pass(times_, piece(behind, begin, end), rest, state);
                        if (std::max(saturating_add(state.transfer, rest),
                                     saturating_add(state.work, least_work_[end])) > limit)
                            continue;
                        state.place = begin;
                        state.number = i;
                        keep(row[end], state);
                    }
                }
            }
            rows.push_back(std::move(row));
        }
        if (rows.back().back().empty()) return std::nullopt;
        return trace(rows);
    }

    // The least work behind each place over all cuts.
    void find_least_work() {
        least_work_.assign(ends_.size(), 0);
        for (std::size_t begin = ends_.size() - 1; begin-- > 0;) {
            least_work_[begin] = index_max;
            for (std::size_t end = begin + 1; end < ends_.size(); ++end)
                least_work_[begin] =
                    std::min(least_work_[begin], saturating_add(work_[begin * ends_.size() + end], least_work_[end]));
        }
    }

    // Drops a state if another one is as good within the tolerance, so that few remain.
    void keep(std::vector<Progress>& states, const Progress& state) const {
        const auto beats = [](const Progress& a, const Progress& b, Index tolerance) {
            return a.transfer <= b.transfer + tolerance && a.work <= b.work + tolerance;
        };
        if (std::ranges::any_of(states, [&](const Progress& other) { return beats(other, state, tolerance_); })) return;
        std::erase_if(states, [&](const Progress& other) { return beats(state, other, 0); });
        states.push_back(state);
    }

    [[nodiscard]] PassTimes piece(const PieceTime& behind, std::size_t begin, std::size_t end) const {
        return {transfer_of(times_.run.alone, extent_, ends_[begin], ends_[end]),
                transfer_of(behind, extent_, ends_[begin], ends_[end]), work_[begin * ends_.size() + end]};
    }

    [[nodiscard]] std::vector<PassTimes> pieces_of(const Cuts& cuts) const {
        const PieceTime& behind = longest(times_.run.behind, static_cast<Index>(cuts.ends.size()));
        std::vector<PassTimes> pieces;
        std::size_t begin = 0;
        for (const Index end : cuts.ends) {
            const auto place = static_cast<std::size_t>(std::ranges::lower_bound(ends_, end) - ends_.begin());
            pieces.push_back(piece(behind, begin, place));
            begin = place;
        }
        return pieces;
    }

    [[nodiscard]] Cuts trace(const std::vector<std::vector<std::vector<Progress>>>& rows) const {
        const auto& finals = rows.back().back();
        const auto* state = &*std::ranges::min_element(finals, {}, done);
        Cuts cuts;
        cuts.time = done(*state);
        std::size_t end = ends_.size() - 1;
        for (std::size_t k = rows.size() - 1; k > 0; --k) {
            cuts.ends.push_back(ends_[end]);
            end = state->place;
            state = &rows[k - 1][end][state->number];
        }
        std::ranges::reverse(cuts.ends);
        cuts.order.resize(cuts.ends.size());
        std::iota(cuts.order.begin(), cuts.order.end(), std::size_t{0});
        return cuts;
    }

    const OverlapTimes& times_;
    const Index extent_;
    std::vector<Index> ends_;
    std::vector<Index> work_;  // between two places
    std::vector<Index> least_work_;
    Index tolerance_ = 0;  // picoseconds
};

}  // namespace

Index in_one_piece(const OverlapTimes& times, Index transfer, Index whole_work) {
    if (times.work_first) return saturating_add(whole_work, transfer);
    return saturating_add(std::max(transfer, begin(times, transfer).work), whole_work);
}

Index overlapped_time(const OverlapTimes& times, Index extent, const std::vector<Index>& ends,
                      const std::vector<std::size_t>& order) {
    const PieceTime& behind = longest(times.run.behind, static_cast<Index>(ends.size()));
    std::vector<PassTimes> pieces;
    Index begin = 0;
    for (const Index end : ends) {
        pieces.push_back({transfer_of(times.run.alone, extent, begin, end), transfer_of(behind, extent, begin, end),
                          times.work(begin, end)});
        begin = end;
    }
    return time_of(times, pieces, order);
}

Cuts best_cuts(const OverlapTimes& times, Index extent, Index places, Index pieces_max) {
    const CutTable table(times, extent, std::min(places, extent));
    const std::vector<Cuts> all = table.all(pieces_max);
    Cuts best = *std::ranges::min_element(all, {}, &Cuts::time);
    best.whole_work = table.whole_work();
    return best;
}

Cuts steady_cuts(const OverlapTimes& times, Index extent, Index places, Index pieces_max) {
    const CutTable table(times, extent, std::min(places, extent));
    std::vector<CutTable> tables = {table};
    for (const Index percent : work_percents) tables.push_back(table.with_work(percent));
    std::vector<Cuts> candidates;
    for (const CutTable& one : tables) std::ranges::move(one.all(pieces_max), std::back_inserter(candidates));
    for (Cuts& cuts : candidates) cuts.time = table.time_of(cuts);
    const Index least = std::ranges::min_element(candidates, {}, &Cuts::time)->time;
    std::erase_if(candidates, [&](const Cuts& cuts) { return cuts.time - least > least / steadiness; });
    const auto in_all = [&](const Cuts& cuts) {
        Index sum = 0;
        for (const CutTable& one : tables) sum = saturating_add(sum, one.time_of(cuts));
        const Index pieces = saturating_multiply(std::ssize(tables), std::ssize(cuts.ends));
        return std::pair(saturating_add(sum, scale_up(least, pieces, of_a_piece)), cuts.ends.size());
    };
    Cuts best = *std::ranges::min_element(candidates, {}, in_all);
    best.whole_work = table.whole_work();
    return best;
}

}  // namespace reshard
