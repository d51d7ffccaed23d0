#include "conformance/boxes/drawn.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/at.hpp"

namespace reshard::conformance {

namespace {

using test::below;
using test::Random;

// Cuts a box in two, again and again, into about `parts` boxes.
std::vector<Box> random_cuts(Random& random, const Box& whole, Index parts) {
    std::vector<Box> boxes = {whole};
    for (Index tries = 0; std::ssize(boxes) < parts && tries < 4 * parts && !whole.empty(); ++tries) {
        const auto one = at(below(random, std::ssize(boxes)));
        const auto dim = at(below(random, std::ssize(whole)));
        const Interval side = boxes[one][dim];
        if (side.end - side.begin < 2) continue;
        const Index border = side.begin + 1 + below(random, side.end - side.begin - 1);
        Box upper = boxes[one];
        boxes[one][dim].end = border;
        upper[dim].begin = border;
        boxes.push_back(upper);
    }
    return boxes;
}

Box inside(Random& random, const Box& of) {
    Box box;
    for (const Interval& side : of) {
        const Index begin = side.begin + below(random, side.end - side.begin + 1);
        box.push_back({begin, begin + below(random, side.end - begin + 1)});
    }
    return box;
}

Box grown(const Box& box, Index width, const std::vector<Index>& shape) {
    Box wide;
    for (std::size_t k = 0; k < box.size(); ++k)
        wide.push_back({std::max<Index>(box[k].begin - width, 0), std::min(box[k].end + width, shape[k])});
    return wide;
}

Index elements(const Box& box) {
    Index all = 1;
    for (const Interval& side : box) all *= side.end - side.begin;
    return all;
}

std::vector<Index> row_major_strides(const Box& box, Index unit, Index pad) {
    std::vector<Index> strides(box.size());
    for (std::size_t k = box.size(); k-- > 0;) {
        strides[k] = unit;
        unit *= box[k].end - box[k].begin + (k + 1 == box.size() ? pad : 0);
    }
    return strides;
}

// Boxes in any order with gaps, or all boxes woven into each other.
std::vector<Storage> draw_storages(Random& random, const std::vector<Box>& boxes) {
    std::vector<Storage> storages(boxes.size());
    const bool woven = below(random, 2) == 0;
    const Index pad = woven ? 0 : below(random, 3);
    std::vector<std::size_t> order(boxes.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::shuffle(order, random);
    Index free = below(random, 3);
    for (std::size_t i = 0; i < order.size(); ++i) {
        const Box& box = boxes[order[i]];
        Storage& storage = storages[order[i]];
        if (woven) {
            storage = {static_cast<Index>(i), row_major_strides(box, std::ssize(boxes), 0)};
        } else {
            storage = {free, row_major_strides(box, 1, pad)};
            const Index rows = box.empty() ? 1 : elements(box) / std::max<Index>(1, box.back().end - box.back().begin);
            free += elements(box) + pad * rows + below(random, 3);
        }
    }
    return storages;
}

void draw_owners(Random& random, DrawnBoxes& drawn, const Box& whole) {
    const Index ranks = std::ssize(drawn.table.ranks);
    const bool all_owned = below(random, 3) > 0;
    const Index active = 1 + below(random, ranks);
    for (const Box& box : random_cuts(random, whole, 1 + below(random, 3 * ranks))) {
        if (!all_owned && below(random, 4) == 0) continue;
        drawn.table.ranks[at(below(random, active))].have.push_back(box);
    }
    for (RankBoxes& rank : drawn.table.ranks)
        if (!whole.empty() && below(random, 6) == 0) rank.have.push_back(Box(whole.size()));  // an empty box
}

// Any box if it is owned as a whole.
bool owned(const std::map<Index, Index>& owners, const std::vector<Index>& shape, const Box& box) {
    return std::ranges::all_of(numbers_in(shape, box), [&](Index number) { return owners.contains(number); });
}

void draw_wants(Random& random, DrawnBoxes& drawn, const Box& whole) {
    BoxTable& table = drawn.table;
    const std::map<Index, Index> owners = owners_of(table);
    std::vector<Box> all;
    for (const RankBoxes& rank : table.ranks) all.insert(all.end(), rank.have.begin(), rank.have.end());
    const Index kind = below(random, 3);
    for (RankBoxes& rank : table.ranks) {
        if (below(random, 5) == 0) continue;
        std::vector<Box> wants;
        if (kind == 0) {
            const Index width = below(random, 3);
            for (const Box& box : rank.have)
                if (elements(box) > 0) wants.push_back(grown(box, width, table.shape));
        } else {
            for (Index left = below(random, 5); left > 0; --left) {
                const bool nested = kind == 1 && !all.empty();
                wants.push_back(inside(random, nested ? all[at(below(random, std::ssize(all)))] : whole));
            }
        }
        for (const Box& box : wants)
            if (owned(owners, table.shape, box)) rank.want.push_back(box);
    }
}

}  // namespace

DrawnBoxes draw_boxes(Random& random, Index ranks) {
    static constexpr std::array<DType, 3> dtypes = {DType::i32, DType::u8, DType::f64};
    DrawnBoxes drawn;
    drawn.table.dtype = dtypes[at(below(random, std::ssize(dtypes)))];
    Box whole;
    for (Index dims = below(random, 8) == 0 ? 0 : 1 + below(random, 3); dims > 0; --dims) {
        drawn.table.shape.push_back(below(random, 20) == 0 ? 0 : 1 + below(random, 12));
        whole.push_back({0, drawn.table.shape.back()});
    }
    drawn.table.ranks.resize(at(ranks));
    draw_owners(random, drawn, whole);
    draw_wants(random, drawn, whole);
    for (const RankBoxes& rank : drawn.table.ranks) {
        BoxStorages& storages = drawn.storages.emplace_back();
        if (below(random, 2) == 0) storages.have = draw_storages(random, rank.have);
        if (below(random, 2) == 0) storages.want = draw_storages(random, rank.want);
    }
    drawn.arrays = 1 + at(below(random, 2));
    drawn.known = below(random, 2) == 0;
    return drawn;
}

std::vector<Index> numbers_in(const std::vector<Index>& shape, const Box& box) {
    std::vector<Index> numbers = {0};
    for (std::size_t k = 0; k < shape.size(); ++k) {
        std::vector<Index> longer;
        for (const Index number : numbers)
            for (Index i = box[k].begin; i < box[k].end; ++i) longer.push_back(number * shape[k] + i);
        numbers = std::move(longer);
    }
    return numbers;
}

std::vector<std::pair<Index, Index>> places_in(const std::vector<Index>& shape, const std::vector<Box>& boxes,
                                               const std::vector<Storage>& storages) {
    std::vector<std::pair<Index, Index>> places;
    Index next = 0;
    for (std::size_t i = 0; i < boxes.size(); ++i) {
        const Storage storage = storages.empty() ? Storage{next, row_major_strides(boxes[i], 1, 0)} : storages[i];
        std::vector<Index> own = {storage.offset};
        for (std::size_t k = 0; k < shape.size(); ++k) {
            std::vector<Index> longer;
            for (const Index place : own)
                for (Index j = 0; j < boxes[i][k].end - boxes[i][k].begin; ++j)
                    longer.push_back(place + j * storage.strides[k]);
            own = std::move(longer);
        }
        const std::vector<Index> numbers = numbers_in(shape, boxes[i]);
        for (std::size_t j = 0; j < numbers.size(); ++j) places.emplace_back(numbers[j], own[j]);
        next += std::ssize(numbers);
    }
    return places;
}

std::map<Index, Index> owners_of(const BoxTable& table) {
    std::map<Index, Index> owners;
    for (std::size_t rank = 0; rank < table.ranks.size(); ++rank)
        for (const Box& box : table.ranks[rank].have)
            for (const Index number : numbers_in(table.shape, box)) owners[number] = static_cast<Index>(rank);
    return owners;
}

std::string describe(const DrawnBoxes& drawn) {
    const auto print = [](const std::vector<Box>& boxes) {
        std::string text;
        for (const Box& box : boxes) {
            std::vector<std::string> sides;
            for (const Interval& side : box) sides.push_back(fmt::format("{}:{}", side.begin, side.end));
            text += fmt::format(" [{}]", fmt::join(sides, ","));
        }
        return text;
    };
    std::string text = fmt::format("shape [{}], {} arrays\n", fmt::join(drawn.table.shape, ","), drawn.arrays);
    for (std::size_t rank = 0; rank < drawn.table.ranks.size(); ++rank)
        text += fmt::format("rank {} has{} and wants{}\n", rank, print(drawn.table.ranks[rank].have),
                            print(drawn.table.ranks[rank].want));
    return text;
}

}  // namespace reshard::conformance
