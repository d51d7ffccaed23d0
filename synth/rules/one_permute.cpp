#include "synth/rules/one_permute.hpp"

#include <algorithm>

#include "reshard/planner/refinement.hpp"

namespace reshard {

namespace {

bool take(std::vector<Index>& primes, Index prime) {
    const auto found = std::ranges::find(primes, prime);
    if (found == primes.end()) return false;
    primes.erase(found);
    return true;
}

// No atom spans axes: what is cut out of one would have no name.
AtomList by_axes(const Mesh& mesh, const AtomList& atoms) {
    AtomList parts;
    for (const Atom& atom : atoms) {
        const auto names = names_of(mesh, atom);
        if (!names) parts.push_back(atom);
        for (std::size_t i = 0; names && i < names->size(); ++i) parts.push_back(*atom_of(mesh, (*names)[i]));
    }
    return parts;
}

// A prime of the goal that another dimension holds first.
struct Transfer {
    Atom atom;
    std::size_t from = 0;
    std::size_t to = 0;
};

class OnePermute {
public:
    OnePermute(const Mesh& mesh, const PrimeAxes& now, const PrimeAxes& goal)
        : kept_(goal.size()), gives_(goal.size()) {
        std::vector<AtomList> missing;
        for (std::size_t i = 0; i < goal.size(); ++i) {
            for (const Atom& atom : now[i]) gives_[i].push_back(atom.size);
            missing.push_back(keep_prefix(i, by_axes(mesh, canonical(goal[i]))));
            takes_.push_back(!missing.back().empty());
        }
        for (std::size_t to = 0; to < goal.size() && possible_; ++to)
            for (const Atom& atom : missing[to]) assign(atom, to);
        for (const std::vector<Index>& left : gives_) possible_ = possible_ && left.empty();
    }

    std::optional<std::vector<PrimeAxes>> make() {
        if (!possible_ || !order()) return std::nullopt;
        PrimeAxes lists = kept_;
        for (auto round = rounds_.rbegin(); round != rounds_.rend(); ++round)
            for (auto one = round->rbegin(); one != round->rend(); ++one) lists[one->from].push_back(one->atom);
        std::vector<PrimeAxes> made = {lists};
        for (const std::vector<Transfer>& round : rounds_) {
            for (const Transfer& one : round) {
                lists[one.from].pop_back();
                lists[one.to].push_back(one.atom);
            }
            made.push_back(lists);
        }
        return made;
    }

private:
    // Keeps what leads the dimension in the goal, as long as it has such primes: an axis is cut so that those come
    // first. Returns the rest of the goal.
    AtomList keep_prefix(std::size_t dim, const AtomList& goal) {
        AtomList rest;
        for (const Atom& atom : goal) {
            std::vector<Index> order;
            std::vector<Index> behind;
            for (const Index prime : prime_factors(atom.size))
                (rest.empty() && take(gives_[dim], prime) ? order : behind).push_back(prime);
            const std::size_t kept = order.size();
            order.insert(order.end(), behind.begin(), behind.end());
            Index above = atom.size;
            for (std::size_t i = 0; i < order.size(); ++i) {
                above /= order[i];
                (i < kept ? kept_[dim] : rest).push_back({order[i], atom.stride * above});
            }
        }
        return rest;
    }

    // From a dimension that only gives, if there is one.
    void assign(Atom atom, std::size_t to) {
        for (const bool only_gives : {true, false})
            for (std::size_t from = 0; from < gives_.size(); ++from)
                if (from != to && !(only_gives && takes_[from]) && take(gives_[from], atom.size)) {
                    transfers_.push_back({atom, from, to});
                    return;
                }
        possible_ = false;
    }

    // In each round all dimensions take that have nothing left to give. False when some never do.
    bool order() {
        while (!transfers_.empty()) {
            const auto waits = [&](std::size_t dim) {
                return std::ranges::any_of(transfers_, [&](const Transfer& one) { return one.from == dim; });
            };
            std::vector<Transfer> round;
            std::vector<Transfer> later;
            for (const Transfer& one : transfers_) (waits(one.to) ? later : round).push_back(one);
            if (round.empty()) return false;
            rounds_.push_back(std::move(round));
            transfers_ = std::move(later);
        }
        return true;
    }

    PrimeAxes kept_;                         // what leads each dimension from the permute on
    std::vector<std::vector<Index>> gives_;  // primes that it has beyond that
    std::vector<bool> takes_;
    std::vector<Transfer> transfers_;  // each dimension's in taking order
    std::vector<std::vector<Transfer>> rounds_;
    bool possible_ = true;
};

}  // namespace

std::optional<std::vector<PrimeAxes>> by_one_permute(const Mesh& mesh, const PrimeAxes& now, const PrimeAxes& goal) {
    return OnePermute(mesh, now, goal).make();
}

}  // namespace reshard
