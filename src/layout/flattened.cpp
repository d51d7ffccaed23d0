#include "src/layout/flattened.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "reshard/planner/view.hpp"
#include "src/base/try.hpp"
#include "src/layout/leading.hpp"

namespace reshard {

namespace {

constexpr Index flattened_pieces_max = Index{1} << 22;

// One tile while its elements are dealt out.
struct Dealt {
    Index unit = 0;        // elements of a unit
    std::size_t rank = 0;  // that gets the next element
    Index left = 0;        // elements of this rank that are still to come
};

class Flattener {
public:
    Flattener(std::span<const Dim> dims, std::span<const Index> units) : units_(units) {
        // Uncut dimensions at the end make the runs longer.
        std::size_t last = dims.size();
        while (last > 0 && dims[last - 1].atoms.empty()) run_ = saturating_multiply(run_, dims[--last].extent);
        dims_ = dims.first(last);
        for (const Dim& dim : dims_) tiles_ = saturating_multiply(tiles_, shard_count(dim));
    }

    Result<std::vector<Dim::Piece>> pieces() {
        Index runs = 1;
        for (const Dim& dim : dims_) {
            const Index cuts = dim.pieces.empty() ? shard_count(dim) : std::ssize(dim.pieces);
            runs = saturating_multiply(runs, &dim == &dims_.back() ? std::min(cuts, dim.extent) : dim.extent);
        }
        const Index all = saturating_add(runs, saturating_multiply(tiles_, std::ssize(units_)));
        if (all > flattened_pieces_max)
            return fail(Code::unsupported,
                        fmt::format("the flattened tiles have more than {} pieces", flattened_pieces_max));
        for (const Dim& dim : dims_) pieces_.push_back(pieces_of(dim));
        RESHARD_CHECK(deal());
        walk(0, 0);
        return std::move(made_);
    }

private:
    Result<void> deal() {
        const Index units = std::accumulate(units_.begin(), units_.end(), Index{0}, saturating_add);
        std::vector<Index> elements = {run_};
        for (const Dim& dim : dims_) {
            std::vector<Index> finer;
            for (const Index outer : elements)
                for (const Side& side : sides(dim)) finer.push_back(saturating_multiply(outer, side.size()));
            elements = std::move(finer);
        }
        for (const Index count : elements) {
            if (count % units != 0)
                return fail(Code::layout, fmt::format("{} units do not divide a tile of {} elements", units, count));
            dealt_.push_back({count / units, 0, units_[0] * (count / units)});
        }
        return {};
    }

    // Goes through the pieces of dimension d, index by index except in the last, for the tiles from number `tile` on.
    void walk(std::size_t d, Index tile) {
        if (d == dims_.size()) return append(tile, run_);
        const bool last = d + 1 == dims_.size();
        Index begin = 0;
        for (const Dim::Piece& piece : pieces_[d]) {
            const Index number = tile * shard_count(dims_[d]) + piece.shard;
            if (last)
                append(number, (piece.end - begin) * run_);
            else
                for (Index index = begin; index < piece.end; ++index) walk(d + 1, number);
            begin = piece.end;
        }
    }

    void append(Index tile, Index elements) {
        Dealt& dealt = dealt_[static_cast<std::size_t>(tile)];
        while (elements > 0) {
            while (dealt.left == 0) dealt.left = units_[++dealt.rank] * dealt.unit;
            const Index part = std::min(elements, dealt.left);
            dealt.left -= part;
            elements -= part;
            end_ += part;
            made_.push_back({end_, tile * std::ssize(units_) + static_cast<Index>(dealt.rank)});
        }
    }

    std::span<const Dim> dims_;  // up to the last one that is cut
    std::span<const Index> units_;
    Index run_ = 1;  // elements of one index of the last dimension
    Index tiles_ = 1;
    std::vector<std::vector<Dim::Piece>> pieces_;
    std::vector<Dealt> dealt_;  // by tile
    std::vector<Dim::Piece> made_;
    Index end_ = 0;
};

// The dimension cut by `axes` alone. `inner` shards of the other axes are one shard of it.
Dim without_inner(const Dim& dim, AtomList axes, Index inner) {
    Dim made(dim.extent, std::move(axes));
    for (const Dim::Piece& piece : dim.pieces) {
        const Index shard = piece.shard / inner;
        if (!made.pieces.empty() && made.pieces.back().shard == shard)
            made.pieces.back().end = piece.end;
        else
            made.pieces.push_back({piece.end, shard});
    }
    make_canonical(made);
    return made;
}

// The digits of a dimension as dimensions. A digit that is whole on each device is the block of the digit before it.
std::vector<Dim> dims_of_digits(const Dim& dim) {
    Layout one;
    one.dims = {dim};
    std::vector<Dim> dims;
    const auto digits = in_digits(one);
    for (const Dim& digit : digits ? digits->dims : std::vector<Dim>()) {
        if (!dims.empty() && !dims.back().atoms.empty() && digit.atoms.empty())
            dims.back().extent *= digit.extent;
        else
            dims.push_back(digit);
    }
    return dims;
}

// The elements of each of the first `shards` shards, without their common factor.
std::vector<Index> units_of(const Dim& dim, Index shards) {
    std::vector<Index> units(static_cast<std::size_t>(shards), 0);
    Index begin = 0;
    for (const Dim::Piece& piece : dim.pieces) {
        if (piece.shard < shards) units[static_cast<std::size_t>(piece.shard)] += piece.end - begin;
        begin = piece.end;
    }
    Index common = 0;
    for (const Index unit : units) common = std::gcd(common, unit);
    for (Index& unit : units) unit /= std::max<Index>(common, 1);
    return units;
}

}  // namespace

Result<Dim> flattened(std::span<const Dim> dims, const AtomList& axes, std::span<const Index> units) {
    Index extent = 1;
    AtomList atoms;
    for (const Dim& dim : dims) {
        extent = saturating_multiply(extent, dim.extent);
        atoms.insert(atoms.end(), dim.atoms.begin(), dim.atoms.end());
    }
    if (extent == index_max) return fail(Code::overflow, "more elements than 64 bits can count");
    if (std::ssize(units) != combinations(axes))
        return fail(Code::layout, fmt::format("{} units for {} shards", units.size(), combinations(axes)));
    if (std::ranges::all_of(units, [](Index count) { return count == 0; }))
        return fail(Code::layout, "no shard has a unit");
    atoms.insert(atoms.end(), axes.begin(), axes.end());
    RESHARD_TRY(auto& pieces, Flattener(dims, units).pieces());
    Dim flat(extent, canonical(std::move(atoms)), std::move(pieces));
    make_canonical(flat);
    return flat;
}

std::optional<Flattened> unflattened(const Dim& dim) {
    const Index shards = shard_count(dim);
    if (dim.pieces.empty() || shards > flattened_pieces_max) return std::nullopt;
    for (Index inner = shards / 2; inner > 1; --inner) {
        if (shards % inner != 0) continue;
        AtomList axes = dim.atoms;
        auto outer = take_leading(axes, shards / inner);
        if (!outer) continue;
        Flattened found{dims_of_digits(without_inner(dim, *std::move(outer), inner)), std::move(axes),
                        units_of(dim, inner)};
        if (found.dims.size() < 2) continue;
        const auto back = flattened(found.dims, found.axes, found.units);
        if (back && *back == dim) return found;
    }
    return std::nullopt;
}

}  // namespace reshard
