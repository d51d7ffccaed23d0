#include "src/model/fold.hpp"

#include <algorithm>

namespace reshard {

namespace {

// Steps through a side, and counts the side's own indices before a place. Places must ascend.
class OwnIndex {
public:
    explicit OwnIndex(const Side& side) : side_(side) {}
    Index of(Index index) {
        while (side_.intervals[at_].end <= index) before_ += side_.intervals[at_++].size();
        return before_ + index - side_.intervals[at_].begin;
    }

private:
    const Side& side_;
    std::size_t at_ = 0;
    Index before_ = 0;
};

// A segment that repeats in one loop. It is the letter of the word whose period is searched.
struct Term {
    Segment first;
    Repeat repeat;
};

bool same_form(const Term& a, const Term& b) { return a.first.length == b.first.length && a.repeat == b.repeat; }

// A term of the same form follows in both tiles.
bool repeats(const Term& term, const Term& next) {
    return same_form(term, next) && next.first.source > term.first.source && next.first.target > term.first.target;
}

// Terms a and b have one form, and are as far behind their predecessors.
bool same_letter(const Term* a, const Term* b) {
    return same_form(*a, *b) && a->first.source - a[-1].first.source == b->first.source - b[-1].first.source &&
           a->first.target - a[-1].first.target == b->first.target - b[-1].first.target;
}

// A start of the terms: `length` terms that repeat every `period` terms.
struct Prefix {
    std::size_t length = 1;
    std::size_t period = 1;
    [[nodiscard]] std::size_t saved() const { return length - period; }
};

// The prefix of terms[0, count) that saves most terms. The prefix function of Knuth, Morris and Pratt has the least
// period of every prefix of the letters 1, 2, ...; the first term has no predecessor, so only its form must fit.
Prefix best_prefix(const Term* terms, std::size_t count, std::vector<std::size_t>& border) {
    Prefix best;
    border.assign(count, 0);
    for (std::size_t i = 1; i < count; ++i) {
        // Letters 1..i, as a word of length i: border[i] is the length of its longest proper border.
        if (i > 1) {
            std::size_t length = border[i - 1];
            while (length > 0 && !same_letter(terms + i, terms + length + 1)) length = border[length];
            border[i] = same_letter(terms + i, terms + length + 1) ? length + 1 : 0;
        }
        const Prefix prefix{i + 1, i - border[i]};
        if (prefix.saved() > best.saved() && repeats(terms[0], terms[prefix.period])) best = prefix;
    }
    return best;
}

// Searches in windows that double as long as the repeats reach the end of the window. A window that repeats in less
// than half of its terms is doubled too, since a longer period may follow. A look at all terms that finds little is
// expensive, so only a few of them are allowed.
class PeriodSearch {
public:
    Prefix of(const Term* terms, std::size_t count) {
        std::size_t window = std::min(count, first_window);
        while (true) {
            const Prefix best = best_prefix(terms, window, border_);
            const bool poor = 2 * best.saved() < window;
            const bool open = best.length == window || (poor && full_looks_ > 0);
            if (window == count || !open) {
                if (poor && window > first_window) --full_looks_;
                return best;
            }
            window = std::min(count, 2 * window);
        }
    }

private:
    static constexpr std::size_t first_window = 64;
    int full_looks_ = 8;
    std::vector<std::size_t> border_;
};

// Appends a segment to the repeats of `first` if it has the same length and continues them.
bool append(const Segment& first, Repeat& repeat, const Segment& next) {
    const Index source_gap = next.source - first.source;
    const Index target_gap = next.target - first.target;
    if (first.length != next.length || source_gap <= 0 || target_gap <= 0) return false;
    if (repeat.count == 1) {
        repeat = {2, source_gap, target_gap};
        return true;
    }
    if (source_gap != repeat.count * repeat.source_step || target_gap != repeat.count * repeat.target_step)
        return false;
    ++repeat.count;
    return true;
}

// Consecutive segments of one length and one distance become one term.
std::vector<Term> terms_of(const std::vector<Segment>& segments) {
    std::vector<Term> terms;
    for (const Segment& next : segments)
        if (terms.empty() || !append(terms.back().first, terms.back().repeat, next)) terms.push_back({next, {}});
    return terms;
}

std::vector<Progression> fold_terms(const std::vector<Term>& terms) {
    std::vector<Progression> folded;
    PeriodSearch search;
    for (std::size_t at = 0; at < terms.size();) {
        const Prefix prefix = search.of(terms.data() + at, terms.size() - at);
        for (std::size_t i = 0; i < prefix.period; ++i) {
            const Term& term = terms[at + i];
            Progression made{term.first, {}, term.repeat};
            if (i + prefix.period < prefix.length) {
                const Segment& next = terms[at + i + prefix.period].first;
                made.outer = {static_cast<Index>((prefix.length - i - 1) / prefix.period + 1),
                              next.source - term.first.source, next.target - term.first.target};
            }
            folded.push_back(made);
        }
        at += prefix.length;
    }
    return folded;
}

// Consecutive progressions that repeat in the same way, at one distance, become one with an inner loop.
std::vector<Progression> in_two_loops(const std::vector<Progression>& progressions) {
    std::vector<Progression> all;
    for (const Progression& next : progressions) {
        const bool alike = !all.empty() && all.back().outer == next.outer && next.inner.count == 1;
        if (!alike || !append(all.back().first, all.back().inner, next.first)) all.push_back(next);
    }
    return all;
}

}  // namespace

Index flat_rows(const std::vector<Progression>& progressions) {
    Index rows = 0;
    for (const Progression& one : progressions) rows += std::min(one.outer.count, one.inner.count);
    return rows;
}

std::vector<Segment> joined(std::vector<Segment> segments) {
    std::size_t last = 0;
    for (std::size_t i = 1; i < segments.size(); ++i) {
        Segment& before = segments[last];
        const Segment& next = segments[i];
        if (before.source + before.length == next.source && before.target + before.length == next.target)
            before.length += next.length;
        else
            segments[++last] = next;
    }
    if (!segments.empty()) segments.resize(last + 1);
    return segments;
}

std::vector<Segment> segments_of(const Side& common, const Side& source, const Side& target) {
    std::vector<Segment> segments;
    segments.reserve(common.intervals.size());
    OwnIndex in_source(source);
    OwnIndex in_target(target);
    for (const Interval& interval : common.intervals)
        segments.push_back({in_source.of(interval.begin), in_target.of(interval.begin), interval.size()});
    return joined(std::move(segments));
}

// Two ways: the period of all segments, joined within the period; or the period of segments that were joined before.
// The second way finds the period of long blocks that hold many short ones.
std::vector<Progression> fold(const std::vector<Segment>& segments, Folding folding) {
    std::vector<Term> alone;
    alone.reserve(segments.size());
    for (const Segment& segment : segments) alone.push_back({segment, {}});
    std::vector<Progression> period_first = in_two_loops(fold_terms(alone));
    std::vector<Progression> joined_first = fold_terms(terms_of(segments));
    const bool better = folding == Folding::one_loop ? flat_rows(joined_first) < flat_rows(period_first)
                                                     : joined_first.size() < period_first.size();
    return better ? joined_first : period_first;
}

std::vector<Progression> fold(const Side& common, const Side& source, const Side& target, Folding folding) {
    const std::vector<Segment> segments = segments_of(common, source, target);
    if (segments.size() > 1) return fold(segments, folding);
    return {{segments.front(), {}, {}}};
}

}  // namespace reshard
