// How a problem becomes a frame.
#include <algorithm>

#include "reshard/planner/refinement.hpp"
#include "synth/search/refinement.hpp"
#include "synth/search/space.hpp"

namespace reshard {

namespace {

// A stretch of an axis between two borders that matter.
struct Cell {
    Index low = 1;
    Index high = 1;
};

bool covers(const AtomList& atoms, Atom digit) {
    return std::ranges::any_of(atoms, [&](Atom atom) { return is_within(digit, atom); });
}

// The atoms lie across each other's borders, or take up the same digits.
bool clash(Index low, Index high, Atom atom) {
    const Index top = atom.stride * atom.size;
    if (high <= atom.stride) return atom.stride % high != 0;
    if (top <= low) return low % top != 0;
    return true;
}

class SpaceMaker {
public:
    explicit SpaceMaker(const Problem& problem) : problem_(problem) {
        for (const Layout* layout : {&problem.source, &problem.target}) {
            for (const Dim& dim : layout->dims) atoms_.insert(atoms_.end(), dim.atoms.begin(), dim.atoms.end());
            atoms_.insert(atoms_.end(), layout->unreduced.begin(), layout->unreduced.end());
        }
    }

    std::optional<SearchSpace> make(bool cancels, std::size_t most) {
        if (!begin(cancels, most)) return std::nullopt;
        for (const auto& [whole, primes] : {std::pair(true, true), std::pair(false, true), std::pair(false, false)}) {
            if (!cancels && !(whole && primes)) continue;
            if (place(whole ? Cells::axes : Cells::used, primes)) return end(whole);
        }
        return std::nullopt;
    }

    std::optional<SearchSpace> make_limited(bool cancels) {
        frame_.limited = true;
        return make(cancels, searched_max);
    }

    std::optional<SearchSpace> make_coarse(bool cancels, std::size_t most) {
        if (!begin(cancels, most)) return std::nullopt;
        for (const Cells cells : {Cells::all, Cells::merged})
            if (place(cells, false)) return end(false);
        return std::nullopt;
    }

private:
    // The cells of an axis: the whole axis; its parts between borders of the ends, used parts only or idle parts too;
    // or all parts, with neighbouring axes merged if no border separates them.
    enum class Cells { axes, used, all, merged };

    bool begin(bool cancels, std::size_t most) {
        most_ = most;
        frame_.like = &problem_.source;
        frame_.reduction = reduction_of(problem_);
        frame_.lists = problem_.source.dims.size() + 1;
        if (frame_.lists > lists_max) return false;
        cancel(cancels);
        return true;
    }

    std::optional<SearchSpace> end(bool whole) {
        frame_.whole = whole;
        if (!fill(frame_.source, problem_.source) || !fill(frame_.target, problem_.target)) return std::nullopt;
        return std::move(frame_);
    }

    void cancel(bool cancels) {
        for (std::size_t i = 0; i < frame_.dims(); ++i) {
            const Dim& source = problem_.source.dims[i];
            AtomList prefix = cancels ? common_prefix(source.atoms, problem_.target.dims[i].atoms) : AtomList{};
            cancelled_.insert(cancelled_.end(), prefix.begin(), prefix.end());
            frame_.extents.push_back(ceil_divide(source.extent, combinations(prefix)));
            frame_.prefixes.push_back(std::move(prefix));
        }
    }

    // The cells of one axis, from the minor end: between all borders when those form a chain of divisors, else one.
    bool append_cells(Index low, Index high, Cells cells) {
        if (cells == Cells::axes) {
            cells_.push_back({low, high});
            return true;
        }
        std::vector<Index> borders = {low, high};
        for (const AtomList* atoms : {&atoms_, &cancelled_})
            for (const Atom& atom : *atoms)
                for (const Index border : {atom.stride, atom.stride * atom.size})
                    if (low < border && border < high) borders.push_back(border);
        const auto digits = refinement(std::move(borders));
        if (!digits) {
            cells_.push_back({low, high});
            return false;
        }
        for (auto digit = digits->rbegin(); digit != digits->rend(); ++digit)
            if ((cells != Cells::used || covers(atoms_, *digit)) && !covers(cancelled_, *digit))
                cells_.push_back({digit->stride, digit->stride * digit->size});
        return true;
    }

    // Makes the pieces of these cells, cut to primes or not. False if they are too many.
    bool place(Cells cells, bool primes) {
        cells_.clear();
        frame_.pieces.clear();
        frame_.lows.clear();
        frame_.highs.clear();
        Index low = 1;
        for (auto axis = problem_.source.mesh.axes.rbegin(); axis != problem_.source.mesh.axes.rend(); ++axis) {
            if (axis->size == 1) continue;
            const bool chain = cells == Cells::merged || append_cells(low, low * axis->size, cells);
            if (!chain && !primes) return false;
            low *= axis->size;
        }
        if (cells == Cells::merged && (low == 1 || !append_cells(1, low, cells))) return false;
        if (digit_count(cells == Cells::axes, primes) > most_) return false;
        for (const Cell& cell : cells_)
            if (!append_pieces(cell, primes)) return false;
        frame_.mixed = false;
        frame_.cover = 0;
        for (std::size_t i = 0; i < frame_.pieces.size(); ++i) {
            Piece& piece = frame_.pieces[i];
            frame_.cover |= piece.cover;
            for (std::size_t j = 0; j < frame_.pieces.size(); ++j)
                if (const Piece& other = frame_.pieces[j];
                    clash(piece.stride, piece.stride * piece.size, {other.size, other.stride}))
                    piece.clashes |= 1u << j;
            frame_.mixed = frame_.mixed || piece.clashes != 1u << i;
        }
        frame_.devices = frame_.combinations_of(frame_.cover);
        const std::size_t digits = primes ? prime_factors(frame_.devices).size() : frame_.pieces.size();
        if (frame_.devices == 0 || digits > most_ || !State::coded(digits, frame_.lists)) return false;
        const bool all_divide = std::all_of(frame_.extents.begin(), frame_.extents.end(),
                                            [&](Index extent) { return extent % frame_.devices == 0; });
        frame_.even = (all_divide || frame_.limited) && divides(problem_.source) && divides(problem_.target);
        const bool keeps_idle = primes || cells == Cells::all || cells == Cells::merged;
        frame_.exact = !frame_.even && keeps_idle && cancelled_.empty() && frame_.devices <= exact_devices_max;
        return true;
    }

    std::size_t digit_count(bool whole, bool primes) const {
        if (!primes) return cells_.size();
        std::size_t count = 0;
        for (const Cell& cell : cells_) count += prime_factors(cell.high / cell.low).size();
        if (whole)
            for (const Atom& atom : cancelled_) count -= prime_factors(atom.size).size();
        return count;
    }

    bool append_pieces(const Cell& cell, bool primes) {
        const Index size = cell.high / cell.low;
        const std::size_t first = frame_.pieces.size();
        const auto append = [&](Index part, Index below) {
            const Index stride = cell.low * below;
            for (const Atom& atom : cancelled_)
                if (clash(stride, stride * part, atom)) return true;
            if (frame_.pieces.full()) return false;
            frame_.pieces.push_back({part, stride, 0, 0});
            return true;
        };
        if (!primes) {
            if (!append(size, 1)) return false;
        } else {
            std::vector<Index> factors = prime_factors(size);
            if (factors.size() > 12) return false;
            std::vector<Index> divisors = {1};
            for (const Index part : factors)
                for (std::size_t i = divisors.size(); i-- > 0;) divisors.push_back(divisors[i] * part);
            const auto unique = [](std::vector<Index>& numbers) {
                std::ranges::sort(numbers, std::greater<>());
                numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
            };
            unique(divisors);
            unique(factors);
            // Every way to have one prime: above each divisor of the rest. Most major first.
            for (const Index divisor : divisors)
                for (const Index part : factors)
                    if (size / divisor % part == 0 && !append(part, divisor)) return false;
        }
        return cover(first);
    }

    // Numbers the intervals between the borders of the pieces from `first` on.
    bool cover(std::size_t first) {
        borders_.clear();
        for (std::size_t i = first; i < frame_.pieces.size(); ++i) {
            borders_.push_back(frame_.pieces[i].stride);
            borders_.push_back(frame_.pieces[i].stride * frame_.pieces[i].size);
        }
        std::ranges::sort(borders_);
        borders_.erase(std::unique(borders_.begin(), borders_.end()), borders_.end());
        for (std::size_t b = 1; b < borders_.size(); ++b) {
            if (frame_.lows.size() == 30) return false;
            const std::uint32_t bit = 1u << frame_.lows.size();
            bool taken = false;
            for (std::size_t i = first; i < frame_.pieces.size(); ++i) {
                Piece& piece = frame_.pieces[i];
                if (piece.stride > borders_[b - 1] || borders_[b] > piece.stride * piece.size) continue;
                piece.cover |= bit;
                taken = true;
            }
            if (!taken) continue;
            frame_.lows.push_back(borders_[b - 1]);
            frame_.highs.push_back(borders_[b]);
        }
        return true;
    }

    bool fill(State& state, const Layout& layout) {
        for (std::size_t i = 0; i < frame_.lists; ++i) {
            state.lists[i] = List();
            const bool dim = i < frame_.dims();
            const auto rest = dim ? after_prefix(layout.dims[i].atoms, frame_.prefixes[i])
                                  : std::optional<AtomList>(layout.unreduced);
            for (const Atom& atom : *rest)
                if (!append_atom(state.lists[i], atom)) return false;
        }
        return true;
    }

    bool append_atom(List& list, Atom atom) {
        Index found = 1;
        for (auto cell = cells_.rbegin(); cell != cells_.rend(); ++cell) {
            const Index low = std::max(cell->low, atom.stride);
            Index high = std::min(cell->high, atom.stride * atom.size);
            if (high <= low) continue;
            if (low % cell->low != 0 || high % low != 0 || cell->high % high != 0) return false;
            found *= high / low;
            // In the cell from the major end, the least sizes first.
            while (high > low) {
                std::size_t best = frame_.pieces.size();
                for (std::size_t i = 0; i < frame_.pieces.size(); ++i) {
                    const Piece& piece = frame_.pieces[i];
                    if (piece.stride * piece.size != high || piece.stride < low || piece.stride % low != 0) continue;
                    if (best == frame_.pieces.size() || piece.size < frame_.pieces[best].size) best = i;
                }
                if (best == frame_.pieces.size() || list.size() == digits_max) return false;
                frame_.append(list, static_cast<std::uint8_t>(best));
                high = frame_.pieces[best].stride;
            }
        }
        return found == atom.size;
    }

    const Problem& problem_;
    AtomList atoms_;      // of both ends
    AtomList cancelled_;  // of the common prefixes
    std::vector<Cell> cells_;
    std::vector<Index> borders_;
    SearchSpace frame_;
    std::size_t most_ = searched_max;
};

}  // namespace

std::optional<SearchSpace> make_search_space(const Problem& problem, bool levels) {
    if (levels)
        if (auto frame = SpaceMaker(problem).make(false, searched_max - 1)) return frame;
    auto frame = SpaceMaker(problem).make(true, searched_max);
    if (frame && !frame->even && !frame->exact)
        if (auto all = SpaceMaker(problem).make(false, searched_max); all && all->exact) return all;
    return frame;
}

std::optional<SearchSpace> make_limited_space(const Problem& problem, bool cancels) {
    return SpaceMaker(problem).make_limited(cancels);
}

std::optional<SearchSpace> make_coarse_space(const Problem& problem) {
    // With many axes merging rarely helps, and finding that out would take long.
    if (problem.source.mesh.axes.size() > 2 * searched_max) return std::nullopt;
    auto space = SpaceMaker(problem).make_coarse(true, searched_max);
    if (space && !space->even && !space->exact)
        if (auto all = SpaceMaker(problem).make_coarse(false, searched_max); all && all->exact) return all;
    return space;
}

std::optional<SearchSpace> make_space_by_turns(const Problem& problem) {
    if (problem.source.mesh.axes.size() > searched_max) return std::nullopt;
    auto space = SpaceMaker(problem).make_coarse(false, searched_max);
    if (!space || !space->exact) return std::nullopt;
    space->by_turns = true;
    space->whole =
        std::ranges::all_of(space->pieces, [](const Piece& piece) { return prime_factors(piece.size).size() == 1; });
    const bool theirs = equivalent(space->layout(space->source), problem.source) &&
                        equivalent(space->layout(space->target), problem.target);
    return theirs ? std::move(space) : std::nullopt;
}

}  // namespace reshard
