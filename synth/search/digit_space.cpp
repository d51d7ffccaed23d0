#include "synth/search/digit_space.hpp"

#include <algorithm>

#include "reshard/planner/atoms.hpp"
#include "reshard/planner/integer.hpp"
#include "reshard/planner/refinement.hpp"
#include "synth/search/refinement.hpp"

namespace reshard {

namespace {

class DigitSpaceMaker {
public:
    DigitSpaceMaker(const Problem& problem, Index order, bool keeps)
        : problem_(problem), order_(order), keeps_(keeps) {}

    std::optional<DigitSpace> make() {
        space_.like = &problem_.source;
        space_.extents.push_back(1);
        space_.parts.reserve(2 * problem_.source.dims.size() + problem_.source.mesh.axes.size());
        for (const Layout* end : {&problem_.source, &problem_.target})
            if (!divides(*end)) return std::nullopt;
        if (!list_digits() || !append_sums(problem_.source, from_) || !append_sums(problem_.target, to_))
            return std::nullopt;
        for (std::size_t i = 0; i < problem_.source.dims.size(); ++i)
            if (!append_dim(i)) return std::nullopt;
        if (!number_digits()) return std::nullopt;
        return std::move(space_);
    }

    Index orders() { return list_digits() ? orders_ : 0; }

private:
    using Sequence = InlineVector<std::uint8_t, digits_in_space_max>;

    // The prime digits of all axes, most major first, cut at the borders of all atoms.
    bool list_digits() {
        Index high = 1;
        for (const Axis& axis : problem_.source.mesh.axes) high *= axis.size;
        for (const Axis& axis : problem_.source.mesh.axes) {
            const Index low = high / axis.size;
            InlineVector<Index, 64> borders;
            borders.push_back(low);
            borders.push_back(high);
            const auto append_borders = [&](const AtomList& atoms) {
                for (const Atom& atom : atoms)
                    for (const Index border : {atom.stride, atom.stride * atom.size})
                        if (low < border && border < high) {
                            if (borders.full()) return false;
                            borders.push_back(border);
                        }
                return true;
            };
            for (const Layout* end : {&problem_.source, &problem_.target}) {
                for (const Dim& dim : end->dims)
                    if (!append_borders(dim.atoms)) return false;
                if (!append_borders(end->unreduced)) return false;
            }
            if (!form_chain(borders)) return false;
            for (std::size_t i = borders.size(); i-- > 1;)
                if (!append_primes(borders[i - 1], borders[i])) return false;
            high = low;
        }
        return true;
    }

    // The primes of this stretch of an axis, most major first, in one of their orders.
    bool append_primes(Index low, Index high) {
        InlineVector<Index, 64> primes;
        Index left = high / low;
        for (Index prime = 2; left > 1; ++prime) {
            if (prime > left / prime) prime = left;
            for (; left % prime == 0; left /= prime) primes.push_back(prime);
        }
        Index orders = 1;
        while (std::next_permutation(primes.begin(), primes.end()))
            if (++orders > orders_max) return false;
        for (Index i = 0; i < order_ % orders; ++i) std::next_permutation(primes.begin(), primes.end());
        order_ /= orders;
        orders_ = saturating_multiply(orders_, orders);
        for (const Index prime : primes) {
            if (mesh_.full()) return false;
            high /= prime;
            mesh_.push_back({prime, high});
        }
        return true;
    }

    bool append_digits(const AtomList& atoms, Sequence& sequence) const {
        for (const Atom& atom : atoms) {
            Index size = 1;
            for (std::size_t k = 0; k < mesh_.size(); ++k)
                if (is_within(mesh_[k], atom)) {
                    sequence.push_back(static_cast<std::uint8_t>(k));
                    size *= mesh_[k].size;
                }
            if (size != atom.size) return false;
        }
        return true;
    }

    // Gives the digits that an end leaves unreduced their slot.
    bool append_sums(const Layout& end, std::array<std::uint8_t, digits_in_space_max>& slots) {
        Sequence sums;
        if (end.unreduced.empty()) return true;
        space_.sums = true;
        space_.reduction = reduction_of(problem_);
        if (!append_digits(end.unreduced, sums)) return false;
        for (const std::uint8_t digit : sums) slots[digit] = unreduced;
        return true;
    }

    bool append_dim(std::size_t dim) {
        Sequence source;
        Sequence target;
        if (!append_digits(problem_.source.dims[dim].atoms, source) ||
            !append_digits(problem_.target.dims[dim].atoms, target))
            return false;
        Index left = problem_.source.dims[dim].extent;
        for (std::size_t j = 0; j < std::max(source.size(), target.size()); ++j) {
            const bool both = j < source.size() && j < target.size();
            const Atom digit = mesh_[j < source.size() ? source[j] : target[j]];
            left /= digit.size;
            if (keeps_ && both && source[j] == target[j]) {
                kept_[source[j]] = true;
                space_.parts.push_back({dim, digit.size, 0, digit});
                continue;
            }
            if (both && mesh_[target[j]].size != digit.size) return false;
            if (!append_slot(dim, digit.size)) return false;
            if (j < source.size()) from_[source[j]] = last_slot();
            if (j < target.size()) to_[target[j]] = last_slot();
        }
        if (left > 1) {
            space_.rests |= std::uint64_t{1} << space_.extents.size();
            return append_slot(dim, left);
        }
        if (space_.parts.empty() || space_.parts.back().dim != dim) space_.parts.push_back({dim, 1, 0, {}});
        return true;
    }

    bool append_slot(std::size_t dim, Index extent) {
        const auto elements = checked_multiply(space_.elements, extent);
        if (space_.extents.full() || !elements) return false;
        space_.elements = *elements;
        space_.parts.push_back({dim, extent, space_.extents.size(), {}});
        space_.extents.push_back(extent);
        return true;
    }

    [[nodiscard]] std::uint8_t last_slot() const { return static_cast<std::uint8_t>(space_.extents.size() - 1); }

    bool number_digits() {
        bool moves = false;
        for (std::size_t k = 0; k < mesh_.size(); ++k) {
            if (kept_[k]) continue;
            space_.digits.push_back(mesh_[k]);
            space_.from.push_back(from_[k]);
            space_.to.push_back(to_[k]);
            moves = moves || from_[k] != to_[k];
        }
        return moves;
    }

    const Problem& problem_;
    InlineVector<Atom, digits_in_space_max> mesh_;
    std::array<bool, digits_in_space_max> kept_{};
    std::array<std::uint8_t, digits_in_space_max> from_{};
    std::array<std::uint8_t, digits_in_space_max> to_{};
    Index order_;  // that is left for the next stretches
    const bool keeps_;
    Index orders_ = 1;  // of all stretches so far
    DigitSpace space_;
};

}  // namespace

Index digit_orders(const Problem& problem) { return DigitSpaceMaker(problem, 0, true).orders(); }

std::optional<DigitSpace> make_digit_space(const Problem& problem, Index order, bool keeps) {
    return DigitSpaceMaker(problem, order, keeps).make();
}

}  // namespace reshard
