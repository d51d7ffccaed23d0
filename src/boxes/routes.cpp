#include "src/boxes/routes.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/try.hpp"
#include "src/schedule/box_cut.hpp"

namespace reshard {

namespace {

std::vector<NumberedBox> numbered(const BoxTable& table, std::vector<Box> RankBoxes::*boxes) {
    std::vector<NumberedBox> all;
    for (std::size_t rank = 0; rank < table.ranks.size(); ++rank) {
        const std::vector<Box>& of_rank = table.ranks[rank].*boxes;
        for (std::size_t i = 0; i < of_rank.size(); ++i)
            all.push_back({static_cast<Index>(rank), static_cast<Index>(i), &of_rank[i]});
    }
    return all;
}

const RankBoxes& boxes_of_rank(const BoxTable& table, Index rank) {
    return table.ranks[static_cast<std::size_t>(rank)];
}

std::string first_element(const Box& box) {
    std::vector<Index> indices;
    for (const Interval& side : box) indices.push_back(side.begin);
    return fmt::format("element [{}]", fmt::join(indices, ", "));
}

void remove(std::vector<Box>& parts, const Box& hole) {
    std::vector<Box> left;
    for (Box& part : parts) {
        const Box common = intersect(part, hole);
        if (count(common) == 0) {
            left.push_back(std::move(part));
            continue;
        }
        for (Box& rest : without(std::move(part), common)) left.push_back(std::move(rest));
    }
    parts = std::move(left);
}

// Adds the fresh parts of a peer that are in boxes of this rank. One box needs no index.
void append_fresh(std::vector<BoxMove>& moves, Index peer, const Wants& wants, const std::vector<Box>& own,
                  const BoxIndex& index) {
    for (const auto& [number, part] : wants.fresh) {
        if (own.size() == 1) {
            Box common = intersect(part, own.front());
            if (count(common) > 0) moves.push_back({peer, 0, number, std::move(common)});
            continue;
        }
        for (CommonBox& mine : index.overlapping(part))
            moves.push_back({peer, mine.number, number, std::move(mine.common)});
    }
}

}  // namespace

std::string box_text(const Box& box) {
    std::vector<std::string> sides;
    for (const Interval& side : box) sides.push_back(fmt::format("{}:{}", side.begin, side.end));
    return fmt::format("[{}]", fmt::join(sides, ", "));
}

void add(Hash& hash, const BoxTable& table) {
    for (const RankBoxes& rank : table.ranks)
        for (const auto* boxes : {&rank.have, &rank.want}) {
            hash.add(std::ssize(*boxes));
            for (const Box& box : *boxes)
                for (const Interval& side : box) {
                    hash.add(side.begin);
                    hash.add(side.end);
                }
        }
}

Wants wants_of(const std::vector<Box>& boxes, std::size_t dims, Index rank) {
    Wants wants;
    if (boxes.size() == 1 && count(boxes.front()) > 0)
        return {{{0, boxes.front()}}, {}};  // the usual case, without a tree
    std::vector<NumberedBox> all;
    for (const Box& box : boxes) all.push_back({rank, std::ssize(all), &box});
    const BoxIndex index(all, dims);
    std::vector<std::size_t> first;  // fresh part of each box
    for (Index number = 0; number < std::ssize(boxes); ++number) {
        const Box& box = *all[static_cast<std::size_t>(number)].box;
        first.push_back(wants.fresh.size());
        if (count(box) == 0) continue;
        std::vector<Box> parts = {box};
        for (const CommonBox& earlier : index.overlapping(box)) {
            if (earlier.number >= number) break;
            const auto from = static_cast<std::size_t>(earlier.number);
            for (std::size_t i = first[from]; i < first[from + 1]; ++i) {
                Box common = intersect(box, wants.fresh[i].part);
                if (count(common) == 0) continue;
                remove(parts, common);
                wants.repeats.push_back({rank, earlier.number, number, std::move(common)});
            }
        }
        for (Box& part : parts) wants.fresh.push_back({number, std::move(part)});
    }
    return wants;
}

Result<void> check_within(const std::vector<Index>& shape, const RankBoxes& boxes, Index rank) {
    Index elements = 1;
    for (const Index extent : shape) {
        if (extent < 0) return fail(Code::mismatch, fmt::format("the shape has extent {}", extent));
        elements = saturating_multiply(elements, std::max<Index>(extent, 1));
    }
    if (elements == index_max)
        return fail(Code::overflow, fmt::format("the array has more than {} elements", index_max));
    for (const auto& [list, verb] : {std::pair(&boxes.have, "has"), std::pair(&boxes.want, "wants")}) {
        for (const Box& box : *list) {
            if (box.size() != shape.size())
                return fail(Code::mismatch, fmt::format("rank {} {} the box {} of {} dimensions, the array has {}",
                                                        rank, verb, box_text(box), box.size(), shape.size()));
            for (std::size_t k = 0; k < box.size(); ++k)
                if (box[k].begin < 0 || box[k].begin > box[k].end || box[k].end > shape[k])
                    return fail(Code::mismatch, fmt::format("rank {} {} the box {}, which lies outside of the shape "
                                                            "[{}]",
                                                            rank, verb, box_text(box), fmt::join(shape, ", ")));
        }
    }
    return {};
}

BoxRoutes::BoxRoutes(const BoxTable& table)
    : table_(table),
      owned_(numbered(table, &RankBoxes::have), table.shape.size()),
      wanted_(numbered(table, &RankBoxes::want), table.shape.size()) {}

Result<void> BoxRoutes::check(Index rank) const {
    const RankBoxes& own = boxes_of_rank(table_, rank);
    for (Index number = 0; number < std::ssize(own.have); ++number) {
        const Box& box = own.have[static_cast<std::size_t>(number)];
        for (const CommonBox& other : owned_.overlapping(box)) {
            if (other.rank == rank && other.number == number) continue;
            return fail(Code::mismatch,
                        fmt::format("{} is owned twice: by box {} of rank {} and by box {} of rank {}",
                                    first_element(other.common), number, rank, other.number, other.rank));
        }
    }
    for (const Box& box : own.want) {
        if (count(box) == 0) continue;
        std::vector<Box> missing = {box};
        for (const CommonBox& owner : owned_.overlapping(box)) remove(missing, owner.common);
        if (missing.empty()) continue;
        const auto before = [](const Box& a, const Box& b) {
            return std::ranges::lexicographical_compare(a, b, {}, &Interval::begin, &Interval::begin);
        };
        return fail(Code::mismatch, fmt::format("no rank owns {}, which rank {} wants",
                                                first_element(*std::ranges::min_element(missing, before)), rank));
    }
    return {};
}

std::vector<BoxMove> BoxRoutes::receives(Index rank) const {
    std::vector<BoxMove> moves;
    for (const FreshPart& fresh : wants_of(boxes_of_rank(table_, rank).want, table_.shape.size(), rank).fresh)
        for (CommonBox& owner : owned_.overlapping(fresh.part))
            moves.push_back({owner.rank, owner.number, fresh.number, std::move(owner.common)});
    return moves;
}

std::vector<BoxMove> BoxRoutes::sends(Index rank) const {
    const std::vector<Box>& own = boxes_of_rank(table_, rank).have;
    std::vector<BoxMove> found;
    std::vector<NumberedBox> all;
    for (const Box& box : own) {
        for (CommonBox& want : wanted_.overlapping(box))
            if (want.rank != rank) found.push_back({want.rank, std::ssize(all), want.number, std::move(want.common)});
        all.push_back({rank, std::ssize(all), &box});
    }
    if (own.size() > 1) std::ranges::stable_sort(found, {}, &BoxMove::peer);
    const BoxIndex index = own.size() > 1 ? BoxIndex(all, table_.shape.size()) : BoxIndex();
    std::vector<BoxMove> moves;
    moves.reserve(found.size());
    for (auto of_peer = found.begin(); of_peer != found.end();) {
        const Index peer = of_peer->peer;
        const auto end = std::find_if(of_peer, found.end(), [&](const BoxMove& move) { return move.peer != peer; });
        const std::vector<Box>& wanted = boxes_of_rank(table_, peer).want;
        if (wanted.size() == 1)
            std::move(of_peer, end, std::back_inserter(moves));
        else
            append_fresh(moves, peer, wants_of(wanted, table_.shape.size(), peer), own, index);
        of_peer = end;
    }
    return moves;
}

OwnedBoxes owned_boxes(const BoxTable& table) {
    OwnedBoxes boxes{table.shape, false, true, {}};
    const BoxRoutes routes(table);
    const auto filled = [](std::vector<Box> all) {
        std::erase_if(all, [](const Box& box) { return count(box) == 0; });
        return all;
    };
    for (std::size_t i = 0; i < table.ranks.size(); ++i) {
        const auto rank = static_cast<Index>(i);
        MemberBoxes& member = boxes.ranks.emplace_back();
        member.owns = filled(table.ranks[i].have);
        member.wants = filled(table.ranks[i].want);
        for (const BoxMove& move : routes.sends(rank)) member.sends.push_back({move.peer, move.part});
        for (const BoxMove& move : routes.receives(rank))
            if (move.peer != rank) member.receives.push_back({move.peer, move.part});
    }
    return boxes;
}

}  // namespace reshard
