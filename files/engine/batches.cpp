#include <fmt/format.h>

#include "files/engine/geometry.hpp"
#include "files/formats/json_text.hpp"
#include "files/formats/safetensors.hpp"
#include "src/base/try.hpp"

namespace reshard::files {

std::optional<std::vector<std::optional<std::size_t>>> match_dims(const Box& from, const Box& to,
                                                                  std::span<const std::size_t> order) {
    if (!order.empty()) {
        Box ordered;
        for (const std::size_t k : order) ordered.push_back(from[k]);
        auto dims = match_dims(ordered, to);
        for (std::size_t i = 0; dims && i < dims->size(); ++i)
            if ((*dims)[i]) (*dims)[i] = order[*(*dims)[i]];
        return dims;
    }
    std::vector<std::optional<std::size_t>> dims;
    std::size_t next = 0;
    for (const Interval& side : to) {
        while (next < from.size() && from[next].size() == 1 && side.size() != 1) ++next;
        const bool known = next < from.size() && from[next].size() == side.size();
        if (!known && side.size() != 1) return std::nullopt;
        dims.push_back(known ? std::optional(next++) : std::nullopt);
    }
    for (; next < from.size(); ++next)
        if (from[next].size() != 1) return std::nullopt;
    return dims;
}

Index target_bytes(const Job& job, const Block& block) {
    Index bytes = 0;
    const Index size = size_of(job.target.what.tensors[block.tensor].dtype);
    job.target_boxes[block.tensor].meeting(block.box,
                                           [&](const StoredBox&, const Box& shared) { bytes += count(shared) * size; });
    return bytes;
}

namespace {

// Ways to cut a tensor, with their costs.
struct Looked {
    Index tried = 0;
    Index priced = 0;
    bool over() const { return tried >= 4096 || priced >= 100; }
};

class Packer {
public:
    Packer(const Job& job, Index capacity) : job_(job), capacity_(capacity) {}

    Result<std::vector<Batch>> pack() {
        for (std::size_t i = 0; i < job_.target.what.tensors.size(); ++i) RESHARD_CHECK(add(i));
        close();
        return std::move(made_);
    }

private:
    Result<void> add(std::size_t number) {
        Block whole{number, whole_box(job_.target.what.tensors[number].shape)};
        const Index bytes = target_bytes(job_, whole);
        if (bytes == 0) return {};
        if (bytes <= capacity_ - held_) return put(std::move(whole));
        const std::vector<Index> cut = best_cut(whole, bytes);
        if (!cut.empty()) return put_grid(whole, cut);
        return put_bands(std::move(whole));
    }

    // The step of all cuts in a dimension: compressed pieces are written as a whole.
    Index step_of(std::size_t k) const { return job_.target.compressed() ? job_.target.grain[k] : 1; }

    // Cuts bands of the first dimension. Each is as wide as the remaining memory allows.
    Result<void> put_bands(Block whole) {
        const Interval all = whole.box.empty() ? Interval{0, 1} : whole.box[0];
        const Index step = whole.box.empty() ? 1 : step_of(0);
        const Index steps = ceil_divide(all.size(), step);
        for (Index begin = 0; begin < steps;) {
            const auto band = [&](Index end) {
                Block block = whole;
                if (!block.box.empty())
                    block.box[0] = {all.begin + begin * step, std::min(all.begin + end * step, all.end)};
                return block;
            };
            Index fits = begin;
            Index beyond = steps + 1;
            while (beyond - fits > 1) {
                const Index middle = fits + (beyond - fits) / 2;
                (target_bytes(job_, band(middle)) <= capacity_ - held_ ? fits : beyond) = middle;
            }
            if (fits == begin && !current_.empty()) {
                close();
                continue;
            }
            fits = std::max(fits, begin + 1);
            RESHARD_CHECK(put(band(fits)));
            begin = fits;
        }
        return {};
    }

    Result<void> put_grid(const Block& whole, const std::vector<Index>& sides) {
        std::vector<Index> at(sides.size(), 0);
        while (true) {
            Block block = whole;
            for (std::size_t k = 0; k < sides.size(); ++k)
                block.box[k] = {at[k], std::min(at[k] + sides[k], whole.box[k].end)};
            RESHARD_CHECK(put(std::move(block)));
            std::size_t k = sides.size();
            for (; k > 0; --k) {
                at[k - 1] += sides[k - 1];
                if (at[k - 1] < whole.box[k - 1].end) break;
                at[k - 1] = 0;
            }
            if (k == 0) return {};
        }
    }

    // Returns the sides of equal blocks that fit the memory and touch fewer granules than bands. Returns nothing if
    // bands touch as few.
    std::vector<Index> best_cut(const Block& whole, Index bytes) {
        if (whole.box.empty()) return {};
        Block row = whole;
        row.box[0].end = std::min(row.box[0].begin + step_of(0), row.box[0].end);
        const Index row_bytes = std::max<Index>(target_bytes(job_, row), 1);
        std::vector<Index> bands;
        for (const Interval& side : whole.box) bands.push_back(side.size());
        double least = 0;
        const Index rows = capacity_ / row_bytes;
        if (rows > 0) {
            bands[0] = std::min(saturating_multiply(rows, step_of(0)), bands[0]);
            least = price(whole, bands);
            const double needed = 2.0 * static_cast<double>(bytes) / static_cast<double>(job_.granule);
            if (least <= 1.25 * needed + 64) return {};
        }
        std::vector<Index> best;
        std::vector<Index> halvings(bands.size(), 0);
        Looked looked;
        cut_further(whole, halvings, 0, looked, [&](const std::vector<Index>& sides) {
            const double asked = price(whole, sides);
            if ((best.empty() && rows == 0) || asked < 0.9 * least) {
                least = asked;
                best = sides;
            }
        });
        return best;
    }

    std::vector<Index> sides_of(const Block& whole, const std::vector<Index>& halvings) const {
        std::vector<Index> sides;
        for (std::size_t k = 0; k < halvings.size(); ++k) {
            const Index extent = whole.box[k].size();
            Index side = std::max<Index>(ceil_divide(extent, Index{1} << std::min<Index>(halvings[k], 40)), 1);
            // A cut at a border of target files leaves the files whole.
            const Index step = job_.target.grain.empty()
                                   ? job_.target.what.tensors[whole.tensor].boxes.front().box[k].size()
                                   : job_.target.grain[k];
            if (side > step) side = side / step * step;
            if (job_.target.compressed()) side = std::max(side, step);
            sides.push_back(side);
        }
        return sides;
    }

    // Lists the ways to halve dimensions repeatedly so that the block fits. A way with a needless halving is left out.
    template <class Visit>
    void cut_further(const Block& whole, std::vector<Index>& halvings, std::size_t k, Looked& looked,
                     const Visit& visit) {
        if (looked.over()) return;
        const auto first_block = [&](const std::vector<Index>& sides) {
            Block block = whole;
            for (std::size_t d = 0; d < sides.size(); ++d) block.box[d].end = block.box[d].begin + sides[d];
            return block;
        };
        for (halvings[k] = 0;; ++halvings[k]) {
            const std::vector<Index> sides = sides_of(whole, halvings);
            const bool fits = target_bytes(job_, first_block(sides)) <= capacity_;
            ++looked.tried;
            if (fits) {
                ++looked.priced;
                visit(sides);
                break;
            }
            if (k + 1 < halvings.size()) cut_further(whole, halvings, k + 1, looked, visit);
            if (sides[k] <= step_of(k) || looked.over()) break;
        }
        halvings[k] = 0;
    }

    // Estimates the granules of the whole for this cut from one block in the middle.
    double price(const Block& whole, const std::vector<Index>& sides) const {
        Block block = whole;
        double blocks = 1;
        for (std::size_t k = 0; k < sides.size(); ++k) {
            const Index count = ceil_divide(whole.box[k].size(), sides[k]);
            const Index begin = (count - 1) / 2 * sides[k];
            block.box[k] = {begin, std::min(begin + sides[k], whole.box[k].end)};
            blocks *= static_cast<double>(whole.box[k].size()) / static_cast<double>(block.box[k].size());
        }
        return blocks * static_cast<double>(granules_of(make_geometry(job_, {block}), job_.granule));
    }

    // Adds a block to the open batch, or to the next. If a block is too large, because more ranks hold replicas of it,
    // it is halved until it fits.
    Result<void> put(Block block) {
        const Index bytes = target_bytes(job_, block);
        if (bytes == 0) return {};
        if (bytes > capacity_ - held_) close();
        if (bytes <= capacity_) {
            held_ += bytes;
            current_.push_back(std::move(block));
            return {};
        }
        if (job_.target.compressed())
            return fail(
                Code::infeasible,
                fmt::format("a chunk of {} has {} bytes, and there is room for {}: choose smaller chunks, or more "
                            "memory",
                            in_quotes(job_.target.what.tensors[block.tensor].name), job_.target.what.piece_bytes,
                            capacity_));
        const auto longest = std::ranges::max_element(block.box, {}, &Interval::size);
        if (longest == block.box.end() || longest->size() == 1)
            return fail(
                Code::infeasible,
                fmt::format("{} has an element of which all files together have {} bytes, and there is room for {}",
                            in_quotes(job_.target.what.tensors[block.tensor].name), bytes, capacity_));
        Block second = block;
        auto& upper = second.box[static_cast<std::size_t>(longest - block.box.begin())];
        longest->end = upper.begin = longest->begin + longest->size() / 2;
        RESHARD_CHECK(put(std::move(block)));
        return put(std::move(second));
    }

    void close() {
        if (!current_.empty()) made_.push_back(std::move(current_));
        current_.clear();
        held_ = 0;
    }

    const Job& job_;
    Index capacity_;
    std::vector<Batch> made_;
    Batch current_;
    Index held_ = 0;
};

}  // namespace

Result<std::vector<Batch>> make_batches(const Job& job, Index capacity) { return Packer(job, capacity).pack(); }

}  // namespace reshard::files
