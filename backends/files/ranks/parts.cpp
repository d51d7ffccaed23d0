#include "backends/files/ranks/parts.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "backends/files/formats/safetensors.hpp"
#include "src/base/try.hpp"

namespace reshard::files {

namespace {

std::vector<Index> extents_of(const Box& box) {
    std::vector<Index> extents;
    for (const Interval& side : box) extents.push_back(side.size());
    return extents;
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
    static constexpr std::ptrdiff_t parts_max = 256;  // whose buffers are compared with each other

    // In the dimension in which files have most boxes, else in the first: what a rank gets lies together in files.
    Result<Layout> share_of(const Part& part) const {
        const std::vector<Index> extents = extents_of(part.held);
        RESHARD_TRY(const auto& bytes, dense_bytes(part.dtype, extents));
        if (bytes < granule_ || bytes / size_of(part.dtype) < std::ssize(dealt_)) {
            const auto rank = std::ranges::min_element(dealt_) - dealt_.begin();
            return make_layout(Mesh({{"one", 1}}, {static_cast<Index>(rank)}), part.dtype, extents, {});
        }
        std::size_t cut = static_cast<std::size_t>(std::ranges::find_if(extents, [&](Index extent) {
                                                       return extent >= std::ssize(dealt_);
                                                   }) - extents.begin());
        if (cut == extents.size()) cut = static_cast<std::size_t>(std::ranges::max_element(extents) - extents.begin());
        for (std::size_t k = 0; k < extents.size(); ++k)
            if (part.file_dims[k] == part.along && part.along > 0 && extents[k] >= std::ssize(dealt_)) cut = k;
        P spec(extents.size());
        spec[cut] = "ranks";
        return make_layout(Mesh{{"ranks", static_cast<Index>(dealt_.size())}}, part.dtype, extents, spec);
    }

    Result<void> put_halves(Part part) {
        const auto longer = [](const Interval& side) { return side.size() > 1; };
        const auto k = static_cast<std::size_t>(std::ranges::find_if(part.held, longer) - part.held.begin());
        if (k == part.held.size())
            return fail(Code::infeasible, fmt::format("{} bytes of memory are too few for an element of all files", room_));
        Part second = part;
        const Index half = part.held[k].size() / 2;
        second.held[k].begin = part.held[k].end = part.held[k].begin + half;
        const std::size_t d = *part.file_dims[k];
        second.in_file[d].begin = part.in_file[d].end = part.in_file[d].begin + half;
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

Result<Part> make_part(std::size_t tensor, std::size_t stored, Box held, Box in_file, DType dtype, std::size_t along) {
    auto dims = match_dims(in_file, held);
    if (!dims) return fail(Code::mismatch, "a part differs in shape from what it is in files");
    return Part{tensor, stored, std::move(held), std::move(in_file), *std::move(dims), along, dtype};
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

Result<std::vector<Round>> rounds_of(std::vector<Part> parts, Index ranks, Index granule, Index room,
                                     const Weigh& weigh) {
    Rounds rounds(ranks, granule, room, weigh);
    for (Part& part : parts)
        if (count(part.held) > 0) RESHARD_CHECK(rounds.put(std::move(part)));
    return rounds.made();
}

}  // namespace reshard::files
