#include "src/schedule/piece_schedule.hpp"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

#include "src/base/try.hpp"

namespace reshard {
namespace {

std::vector<Transfer> part_of(const std::vector<Transfer>& whole, const Split& split, std::size_t piece) {
    std::vector<Transfer> part;
    for (const Transfer& transfer : whole)
        for (Box& box : boxes_of(piece_of(as_tile(transfer.box), split, piece)))
            part.push_back({transfer.peer, std::move(box)});
    return part;
}

bool inside(const Box& box, const Box& whole) { return intersect(box, whole) == box; }

// Checks that all boxes lie in the piece, by the piece's definition and not by the geometry that cuts.
bool has(const Split& split, std::size_t piece, const Interval& indices) {
    const Index begin = piece == 0 ? 0 : split.ends[piece - 1];
    const Index first = indices.begin % split.block;
    return begin <= first && (indices.size() <= split.ends[piece] - first || split.ends.size() == 1);
}

class PieceJudge {
public:
    PieceJudge(const Schedule& whole, const Split& split, std::span<const Schedule> pieces)
        : whole_(whole), split_(split), pieces_(pieces) {}

    [[nodiscard]] Result<void> check(std::vector<Transfer> Schedule::*transfers) const {
        std::vector<Index> left;  // elements of each whole transfer that no piece has moved
        for (const Transfer& one : whole_.*transfers) left.push_back(count(one.box));
        std::vector<std::vector<Box>> seen(left.size());
        for (std::size_t piece = 0; piece < pieces_.size(); ++piece)
            for (const Transfer& part : pieces_[piece].*transfers) {
                RESHARD_TRY(const auto& at, place_of(part, whole_.*transfers, piece));
                for (const Box& other : seen[at])
                    if (count(intersect(other, part.box)) > 0) return against(part.peer, "moves an element twice");
                seen[at].push_back(part.box);
                left[at] -= count(part.box);
            }
        for (std::size_t i = 0; i < left.size(); ++i)
            if (left[i] != 0) return against((whole_.*transfers)[i].peer, "leaves an element out");
        return {};
    }

private:
    [[nodiscard]] tl::unexpected<Error> against(Index peer, std::string_view what) const {
        return fail(Code::plan,
                    fmt::format("rank {}: between it and rank {} a cut into pieces {}", whole_.rank, peer, what));
    }
    [[nodiscard]] Result<std::size_t> place_of(const Transfer& part, const std::vector<Transfer>& whole,
                                               std::size_t piece) const {
        if (!has(split_, piece, part.box[split_.dim])) return against(part.peer, "moves what is another piece's");
        for (std::size_t i = 0; i < whole.size(); ++i)
            if (whole[i].peer == part.peer && inside(part.box, whole[i].box)) return i;
        return against(part.peer, "moves what the step does not");
    }

    const Schedule& whole_;
    const Split& split_;
    std::span<const Schedule> pieces_;
};

}  // namespace

Schedule schedule_of(const Schedule& whole, const Split& split, std::size_t piece) {
    assert(whole.combine == Combine::copy && whole.fills.empty() && whole.scaled.empty());
    Schedule part = whole;
    part.sends = part_of(whole.sends, split, piece);
    part.receives = part_of(whole.receives, split, piece);
    part.group.clear();  // blocks of a piece may differ in size
    return part;
}

Result<void> check_pieces(const Schedule& whole, const Split& split, std::span<const Schedule> pieces) {
    if (pieces.size() != split.ends.size())
        return fail(Code::plan, fmt::format("{} schedules for {} pieces", pieces.size(), split.ends.size()));
    const PieceJudge judge(whole, split, pieces);
    RESHARD_CHECK(judge.check(&Schedule::sends));
    return judge.check(&Schedule::receives);
}

}  // namespace reshard
