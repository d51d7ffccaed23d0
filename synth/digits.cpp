#include "synth/digits.hpp"

#include <algorithm>

namespace reshard {

std::vector<Index> prime_factors(Index n) {
    std::vector<Index> factors;
    for (Index p = 2; p <= n / p; ++p)
        for (; n % p == 0; n /= p) factors.push_back(p);
    if (n > 1) factors.push_back(n);
    return factors;
}

AtomList split_into_primes(const Mesh& mesh, const AtomList& atoms, PrimeOrder order) {
    AtomList primes;
    const auto split = [&](Atom atom) {
        std::vector<Index> factors = prime_factors(atom.size);
        if (order == PrimeOrder::descending) std::ranges::reverse(factors);
        Index above = atom.size;
        for (const Index p : factors) {
            above /= p;
            primes.push_back({p, atom.stride * above});
        }
    };
    for (const Atom& atom : atoms) {
        const auto names = names_of(mesh, atom);
        if (!names)
            split(atom);
        else
            for (const SubAxis& part : *names) split(*atom_of(mesh, part));
    }
    return primes;
}

std::optional<AtomList> common_refinement(const Layout& a, const Layout& b) {
    std::vector<Index> borders;
    AtomList used = used_atoms(a);
    const AtomList more = used_atoms(b);
    used.insert(used.end(), more.begin(), more.end());
    for (const Layout* layout : {&a, &b}) {
        // The used set merges neighbours; the borders that matter are those of the lists.
        AtomList atoms = layout->unreduced;
        for (const Dim& dim : layout->dims) atoms.insert(atoms.end(), dim.atoms.begin(), dim.atoms.end());
        for (const Atom& atom : atoms) {
            borders.push_back(atom.stride);
            borders.push_back(atom.stride * atom.size);
        }
    }
    std::ranges::sort(borders);
    borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
    AtomList digits;
    for (std::size_t i = borders.size(); i-- > 1;) {
        if (borders[i] % borders[i - 1] != 0) return std::nullopt;
        const Atom digit{borders[i] / borders[i - 1], borders[i - 1]};
        const auto covers = [&](Atom atom) {
            return atom.stride <= digit.stride && digit.stride < atom.stride * atom.size;
        };
        if (std::ranges::any_of(used, covers)) digits.push_back(digit);
    }
    return digits;
}

AtomList cut(const AtomList& atoms, const AtomList& digits) {
    AtomList pieces;
    for (const Atom& atom : atoms)
        for (const Atom& digit : digits)
            if (digit.stride >= atom.stride && digit.stride < atom.stride * atom.size) pieces.push_back(digit);
    return pieces;
}

std::uint64_t State::code(std::size_t count) const {
    std::uint64_t word = 1;
    for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t j = 0; j < lists[i].size; ++j) word = word << 4 | lists[i].at[j];
        word = word << 4 | 15;
    }
    return word;
}

Layout Frame::layout(const State& state) const {
    Layout made{like->dtype, like->mesh, {}, {}};
    const auto atoms_of = [&](const State::List& list, AtomList atoms) {
        for (std::size_t j = 0; j < list.size; ++j) atoms.push_back(digits[list.at[j]]);
        return atoms;
    };
    for (std::size_t i = 0; i + 1 < lists; ++i)
        made.dims.push_back({like->dims[i].extent, canonical(atoms_of(state.lists[i], prefixes[i]))});
    made.unreduced = as_set(atoms_of(state.lists[lists - 1], {}));
    return made;
}

namespace {

// Cuts a canonical list at the borders of the digits.
State::List list_of(const AtomList& atoms, const AtomList& digits) {
    State::List list;
    for (const Atom& atom : atoms)
        for (std::size_t d = 0; d < digits.size(); ++d) {
            if (digits[d].stride < atom.stride || digits[d].stride >= atom.stride * atom.size) continue;
            list.push(static_cast<std::uint8_t>(d));
        }
    return list;
}

}  // namespace

namespace {

// The problem in these digits, or nullopt when a search over them would take too long.
std::optional<Frame> frame_in(const Problem& problem, const AtomList& digits) {
    Frame frame;
    frame.like = &problem.source;
    frame.lists = problem.source.dims.size() + 1;
    AtomList cancelled;
    for (std::size_t i = 0; i + 1 < frame.lists; ++i) {
        const AtomList prefix = cut(common_prefix(problem.source.dims[i].atoms, problem.target.dims[i].atoms), digits);
        cancelled.insert(cancelled.end(), prefix.begin(), prefix.end());
        frame.prefixes.push_back(prefix);
        frame.extents.push_back(ceil_divide(problem.source.dims[i].extent, combinations(prefix)));
    }
    for (const Atom& digit : digits)
        if (std::ranges::find(cancelled, digit) == cancelled.end()) frame.digits.push_back(digit);
    if (frame.digits.size() > State::searched_max || frame.digits.size() + frame.lists > 15) return std::nullopt;
    const auto fill = [&](State& state, const Layout& layout) {
        for (std::size_t i = 0; i < frame.lists; ++i) {
            const bool dim = i + 1 < frame.lists;
            const auto rest = dim ? after_prefix(layout.dims[i].atoms, canonical(frame.prefixes[i]))
                                  : std::optional<AtomList>(layout.unreduced);
            state.lists[i] = list_of(*rest, frame.digits);
        }
    };
    fill(frame.source, problem.source);
    fill(frame.target, problem.target);
    return frame;
}

}  // namespace

std::vector<Frame> frames_of(const Problem& problem) {
    const auto coarse = common_refinement(problem.source, problem.target);
    if (!coarse || problem.source.dims.size() + 1 > State::lists_max) return {};
    // Digits that neither end uses help too: what takes two moves is cheaper on smaller tiles.
    const Mesh& mesh = problem.source.mesh;
    AtomList all = complement(*coarse, device_count(problem.source));
    all.insert(all.begin(), coarse->begin(), coarse->end());
    for (const AtomList& atoms : {all, *coarse}) {
        const AtomList digits = split_into_primes(mesh, atoms, PrimeOrder::ascending);
        const AtomList others = split_into_primes(mesh, atoms, PrimeOrder::descending);
        std::vector<Frame> frames;
        for (const AtomList& one : {digits, others}) {
            if (!frames.empty() && digits == others) break;
            if (auto frame = frame_in(problem, one)) frames.push_back(std::move(*frame));
        }
        for (Frame& frame : frames) frame.whole = digits == others && atoms.size() == all.size();
        if (!frames.empty()) return frames;
    }
    if (auto frame = frame_in(problem, *coarse)) return {std::move(*frame)};
    return {};
}

}  // namespace reshard
