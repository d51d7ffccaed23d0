#include "files/ranks/parts.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "files/engine/stored_view.hpp"
#include "files/formats/safetensors.hpp"
#include "src/base/try.hpp"

namespace reshard::files {

namespace {

std::vector<Index> extents_of(const Box& box) {
    std::vector<Index> extents;
    for (const Interval& side : box) extents.push_back(side.size());
    return extents;
}

using Dims = std::vector<std::optional<std::size_t>>;

Dims inverse(const Dims& dims, std::size_t size) {
    Dims made(size);
    for (std::size_t k = 0; k < dims.size(); ++k)
        if (dims[k]) made[*dims[k]] = k;
    return made;
}

class Rounds {
public:
    Rounds(Index ranks, Index granule, Index room, const Weigh& weigh)
        : granule_(granule),
          room_(room),
          weigh_(weigh),
          dealt_(static_cast<std::size_t>(ranks), 0),
          held_(static_cast<std::size_t>(ranks), 0) {}

    Result<void> put(Part part) {
        SharedPart shared{std::move(part), {}};
        RESHARD_ASSIGN(shared.share, share_of(shared.part));
        std::vector<Index> weights;
        for (Index rank = 0; rank < std::ssize(held_); ++rank) weights.push_back(weigh_(shared, rank));
        if (std::ranges::max(weights) > room_) return put_halves(std::move(shared.part));
        bool fits = std::ssize(current_) < parts_max;
        for (std::size_t rank = 0; rank < held_.size(); ++rank) fits = fits && weights[rank] <= room_ - held_[rank];
        if (!fits) close();
        for (std::size_t rank = 0; rank < held_.size(); ++rank) {
            held_[rank] += weights[rank];
            dealt_[rank] += share_bytes(shared, static_cast<Index>(rank));
        }
        current_.push_back(std::move(shared));
        return {};
    }

    std::vector<Round> made() {
        close();
        return std::move(made_);
    }

private:
    static constexpr std::ptrdiff_t parts_max = 256;  // compared in one round

    // Cuts the dimension that is outermost in files, so that a rank's share is contiguous there.
    Result<Layout> share_of(const Part& part) const {
        const std::vector<Index> extents = extents_of(part.held);
        const Index ranks = std::ssize(dealt_);
        RESHARD_TRY(const auto& bytes, dense_bytes(part.dtype, extents));
        if (bytes < granule_ || bytes / size_of(part.dtype) < ranks) {
            const Index rank = std::ranges::min_element(dealt_) - dealt_.begin();
            return make_layout(Mesh({{"one", 1}}, {rank}), part.dtype, extents, {});
        }
        P spec(extents.size());
        spec[cut_of(part, ranks)] = "ranks";
        return make_layout(Mesh{{"ranks", ranks}}, part.dtype, extents, spec);
    }

    // Returns the outermost dimension if it has enough indices. Otherwise returns the first dimension that has, or the
    // longest.
    static std::size_t cut_of(const Part& part, Index indices) {
        const std::vector<Index> extents = extents_of(part.held);
        for (std::size_t k = 0; k < extents.size(); ++k)
            if (part.file_dims[k] == part.outermost && extents[k] >= indices) return k;
        const auto enough = std::ranges::find_if(extents, [&](Index extent) { return extent >= indices; });
        const auto cut = enough != extents.end() ? enough : std::ranges::max_element(extents);
        return static_cast<std::size_t>(cut - extents.begin());
    }

    Result<void> put_halves(Part part) {
        if (count(part.held) == 1)
            return fail(Code::infeasible,
                        fmt::format("{} bytes of memory are too few for an element of all files", room_));
        const std::size_t k = cut_of(part, 2);
        Part second = part;
        const Index half = part.held[k].size() / 2;
        second.held[k].begin = part.held[k].end = part.held[k].begin + half;
        Interval& lower = part.in_file[*part.file_dims[k]];
        second.in_file[*part.file_dims[k]].begin = lower.end = lower.begin + half;
        RESHARD_CHECK(put(std::move(part)));
        return put(std::move(second));
    }

    void close() {
        if (!current_.empty()) made_.push_back(std::move(current_));
        current_.clear();
        std::ranges::fill(held_, 0);
    }

    Index granule_;
    Index room_;
    const Weigh& weigh_;
    std::vector<Index> dealt_;  // bytes of each rank, of all rounds
    std::vector<Index> held_;   // bytes of each rank, of the round that is open
    Round current_;
    std::vector<Round> made_;
};

}  // namespace

Result<Part> make_part(const Move& move, const PartProblem& problem, bool loads, DType dtype,
                       const StoredTensor& files) {
    const TensorPart& on_ranks = loads ? problem.target : problem.source;
    Part part;
    part.tensor = loads ? move.target : move.source;
    part.stored = loads ? move.source : move.target;
    part.in_file = loads ? move.from : move.to;
    part.held = on_ranks.box ? *on_ranks.box : whole_box(shape(*on_ranks.layout));
    part.dtype = dtype;
    part.layout = on_ranks.layout;
    part.file_view = loads ? move.source_view : move.target_view;
    if (!loads) part.order = problem.source.order;
    const auto dims = loads ? match_dims(part.in_file, part.held, problem.source.order)
                            : match_dims(part.held, part.in_file, part.order);
    if (!dims) return fail(Code::mismatch, "a part differs in shape from what it is in files");
    part.file_dims = loads ? *dims : inverse(*dims, part.held.size());
    if (files.boxes.empty() || files.shape.empty()) return part;
    const StoredBox& first = files.boxes.front();
    const std::vector<Index> strides =
        part.file_view.empty() ? first.strides : in_view(first, files.shape, part.file_view).front().strides;
    part.outermost = static_cast<std::size_t>(std::ranges::max_element(strides) - strides.begin());
    return part;
}

Box in_file_of(const Part& part, const Box& own) {
    Box box = part.in_file;
    for (std::size_t k = 0; k < own.size(); ++k) {
        if (!part.file_dims[k]) continue;
        Interval& side = box[*part.file_dims[k]];
        side = {side.begin + own[k].begin, side.begin + own[k].end};
    }
    return box;
}

Index share_bytes(const SharedPart& shared, Index rank) {
    return count(tile(shared.share, rank)) * size_of(shared.part.dtype);
}

StoredTensor stored_share(const SharedPart& shared, Index rank, Index file, Index begin) {
    const Tile own = tile(shared.share, rank);
    const DType dtype = shared.part.dtype;
    StoredTensor tensor{"", dtype, shape(shared.share), {}};
    if (count(own) > 0)
        tensor.boxes.push_back({as_box(own), file, begin, dense_strides(reshard::extents(own), size_of(dtype))});
    return tensor;
}

Result<std::vector<Round>> rounds_of(std::vector<Part> parts, Index ranks, Index granule, Index room,
                                     const Weigh& weigh) {
    Rounds rounds(ranks, granule, room, weigh);
    for (Part& part : parts)
        if (count(part.held) > 0) RESHARD_CHECK(rounds.put(std::move(part)));
    return rounds.made();
}

}  // namespace reshard::files
