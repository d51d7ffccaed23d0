// The rows of a list. Equal questions are kept once, with their ends as one array.
#include <algorithm>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>

#include "reshard/planner/normalize_devices.hpp"
#include "src/base/hash.hpp"
#include "src/base/try.hpp"
#include "src/model/part_ends.hpp"
#include "src/model/rows.hpp"
#include "src/schedule/exchange.hpp"

namespace reshard {

namespace {

// One end of a question, and the storages of its tiles by rank. If empty, tiles are parts of dense, row-major tiles.
struct End {
    PartEnd end;
    std::vector<Storage> storages = {};
};

Slot slot_on(const End& end, BufferId buffer, Index rank) {
    Tile held = tile(end.end.array, rank);
    if (count(held) == 0) return {buffer, 0, std::move(held), {}};
    Storage storage =
        end.storages.empty() ? end.end.storage_on(held, rank) : end.storages[static_cast<std::size_t>(rank)];
    return {buffer, 0, std::move(held), std::move(storage)};
}

}  // namespace

Result<void> copies_only(const Layout& layout) {
    RESHARD_CHECK(validate(layout));
    if (layout.unreduced.empty()) return {};
    return fail(Code::unsupported,
                fmt::format("rows copy bytes, and an array in {} summands ({}) must be reduced first",
                            summand_count(layout), name(layout.reduction)));
}

struct RowSchedule::Question {
    End source;
    End target;
};

bool operator==(const TensorPart& a, const TensorPart& b) {
    return a.box == b.box && a.order == b.order && (a.layout == b.layout || *a.layout == *b.layout);
}

namespace {

using Question = RowSchedule::Question;

Result<Question> understood(const PartProblem& parts) {
    RESHARD_TRY(auto& ends, ends_of(parts));
    Layout& source = ends.source.array;
    Layout& target = ends.target.array;
    std::tie(source, target) = normalized_devices(source, target);
    return Question{{std::move(ends.source)}, {std::move(ends.target)}};
}

Result<Question> understood(const Problem& problem) {
    return understood(PartProblem{{std::make_shared<const Layout>(problem.source)},
                                  {std::make_shared<const Layout>(problem.target)}});
}

// Checks that each rank of the layout has a storage, and that all offsets fit 64 bits.
Result<void> fit(const std::vector<Storage>& storages, const Layout& layout, std::string_view which) {
    if (storages.empty()) return {};
    if (std::ssize(storages) < world_size(layout.mesh))
        return fail(Code::mismatch, fmt::format("storages of {} ranks for the {} of {}", storages.size(), which,
                                                world_size(layout.mesh)));
    for (Index rank = 0; rank < world_size(layout.mesh); ++rank) {
        const Tile held = tile(layout, rank);
        if (count(held) == 0) continue;
        const auto extent = extent_of(storages[static_cast<std::size_t>(rank)], held);
        const bool fits = extent && checked_multiply(*extent, size_of(layout.dtype));
        if (!extent || !fits)
            return fail(extent ? Code::overflow : extent.error().code,
                        fmt::format("the {} of rank {}: {}", which, rank,
                                    extent ? "the storage reaches past 64 bits" : extent.error().message));
    }
    return {};
}

// An array whose tiles lie in the caller's storages.
struct StoredProblem {
    const Layout& source;
    const Layout& target;
    const RankStorages& storages;
    friend bool operator==(const StoredProblem& a, const StoredProblem& b) {
        return a.source == b.source && a.target == b.target && a.storages == b.storages;
    }
};

Result<Question> understood(const StoredProblem& array) {
    RESHARD_TRY(auto& question, understood(Problem{array.source, array.target}));
    const RankStorages& storages = array.storages;
    if (!storages.source.empty() || !storages.target.empty()) RESHARD_CHECK(same_array(array.source, array.target));
    RESHARD_CHECK(fit(storages.source, array.source, "source"));
    RESHARD_CHECK(fit(storages.target, array.target, "target"));
    question.source.storages = storages.source;
    question.target.storages = storages.target;
    return std::move(question);
}

// Hashes everything that decides the rows, except storages. Names do not decide them.
struct PartHash {
    std::uint64_t state = 0;
    void add(Index word) { mix(state, static_cast<std::uint64_t>(word)); }
    void add(const Layout& layout) {
        add(size_of(layout.dtype));
        for (const Axis& axis : layout.mesh.axes) add(axis.size);
        for (const Index device : layout.mesh.devices.devices()) add(device);
        for (const Dim& dim : layout.dims) {
            add(dim.extent);
            for (const Atom& atom : dim.atoms) {
                add(atom.size);
                add(atom.stride);
            }
            for (const Dim::Piece& piece : dim.pieces) {
                add(piece.end);
                add(piece.shard);
            }
            add(dim.balanced ? 1 : 0);
        }
    }
    void add(const TensorPart& part) {
        add(*part.layout);
        for (const std::size_t dim : part.order) add(static_cast<Index>(dim));
        if (!part.box) return;
        for (const Interval& side : *part.box) {
            add(side.begin);
            add(side.end);
        }
    }
};

}  // namespace

template <class Asked>
Result<RowSchedule> RowSchedule::make_list(std::span<const Asked> list) {
    if (list.size() > UINT32_MAX) return fail(Code::unsupported, "more than 2^32 arrays");
    RowSchedule made;
    made.question_of_.reserve(list.size());
    std::unordered_multimap<std::uint64_t, std::size_t> known;  // hash, index in the list
    for (std::size_t i = 0; i < list.size(); ++i) {
        PartHash hash;
        hash.add(list[i].source);
        hash.add(list[i].target);
        const auto [first, last] = known.equal_range(hash.state);
        const auto found = std::find_if(first, last, [&](const auto& entry) { return list[entry.second] == list[i]; });
        if (found != last) {
            made.question_of_.push_back(made.question_of_[found->second]);
            continue;
        }
        auto question = understood(list[i]);
        if (!question) return fail(question.error().code, fmt::format("array {}: {}", i, question.error().message));
        known.emplace(hash.state, i);
        made.ranks_ = std::max(
            {made.ranks_, world_size(question->source.end.array.mesh), world_size(question->target.end.array.mesh)});
        made.question_of_.push_back(static_cast<std::uint32_t>(made.questions_.size()));
        made.questions_.push_back(std::make_shared<const Question>(*std::move(question)));
    }
    return made;
}

Result<RowSchedule> RowSchedule::make(std::span<const Problem> arrays) { return make_list(arrays); }
Result<RowSchedule> RowSchedule::make(std::span<const PartProblem> parts) { return make_list(parts); }

Result<RowSchedule> RowSchedule::make(std::span<const Problem> arrays, std::span<const RankStorages> storages) {
    if (arrays.size() != storages.size())
        return fail(Code::mismatch, fmt::format("{} arrays and {} storages", arrays.size(), storages.size()));
    std::vector<StoredProblem> list;
    for (std::size_t i = 0; i < arrays.size(); ++i) list.push_back({arrays[i].source, arrays[i].target, storages[i]});
    return make_list(std::span<const StoredProblem>(list));
}

Result<RowSchedule> RowSchedule::make(const Problem& array, const RankStorages& storages) {
    RESHARD_TRY(auto& question, understood(StoredProblem{array.source, array.target, storages}));
    RowSchedule made;
    made.ranks_ = std::max(world_size(array.source.mesh), world_size(array.target.mesh));
    made.question_of_ = {0};
    made.questions_.push_back(std::make_shared<const Question>(std::move(question)));
    return made;
}

namespace {

// Returns the rows of one question, as array 0.
template <class AnyRow>
void append_question(const Question& question, Index rank, RowSide side, std::vector<AnyRow>& rows) {
    const Layout& source = question.source.end.array;
    const Layout& target = question.target.end.array;
    const bool sends = side == RowSide::send;
    if (!position_of(sends ? source.mesh : target.mesh, rank)) return;
    const Slot own =
        sends ? slot_on(question.source, BufferId::source, rank) : slot_on(question.target, BufferId::target, rank);
    if (count(own.tile) == 0) return;
    std::vector<PartTransfer> transfers =
        sends ? exchange_sent_parts(source, target, rank) : exchange_received_parts(source, target, rank);
    if (sends && position_of(target.mesh, rank)) transfers.push_back({rank, intersect(own.tile, tile(target, rank))});
    std::ranges::stable_sort(transfers, {}, &PartTransfer::peer);
    std::vector<Tile> parts;
    for (std::size_t i = 0; i < transfers.size(); ++i) {
        parts.push_back(std::move(transfers[i].part));
        const Index peer = transfers[i].peer;
        if (i + 1 < transfers.size() && transfers[i + 1].peer == peer) continue;
        const Slot other =
            sends ? slot_on(question.target, BufferId::target, peer) : slot_on(question.source, BufferId::source, peer);
        AnyRow row;
        row.peer = peer;
        append_rows(row, parts, sends ? own : other, sends ? other : own, size_of(source.dtype), rows);
        parts.clear();
    }
}

}  // namespace

template <class AnyRow>
std::vector<AnyRow> RowSchedule::all_rows(Index rank, RowSide side) const {
    std::vector<AnyRow> of_questions;
    std::vector<std::size_t> ends;  // in it, of each question
    ends.reserve(questions_.size() + 1);
    ends.push_back(0);
    for (const auto& question : questions_) {
        append_question(*question, rank, side, of_questions);
        ends.push_back(of_questions.size());
    }
    std::size_t total = 0;
    for (const std::uint32_t question : question_of_) total += ends[question + 1] - ends[question];
    std::vector<AnyRow> all;
    all.reserve(total);
    for (std::size_t array = 0; array < question_of_.size(); ++array) {
        const std::uint32_t question = question_of_[array];
        for (std::size_t i = ends[question]; i < ends[question + 1]; ++i) {
            all.push_back(of_questions[i]);
            all.back().array = static_cast<Index>(array);
        }
    }
    return all;
}

std::vector<Row> RowSchedule::rows(Index rank, RowSide side) const { return all_rows<Row>(rank, side); }

std::vector<NestedRow> RowSchedule::nested_rows(Index rank, RowSide side) const {
    return all_rows<NestedRow>(rank, side);
}

Result<std::vector<Row>> schedule_rows(const Layout& source, const Layout& target, Index rank, RowSide side) {
    const Problem array{source, target};
    RESHARD_TRY(const auto& made, RowSchedule::make(array, RankStorages{}));
    return made.rows(rank, side);
}

Result<std::vector<Row>> schedule_rows(std::span<const Problem> arrays, Index rank, RowSide side) {
    RESHARD_TRY(const auto& made, RowSchedule::make(arrays));
    return made.rows(rank, side);
}

}  // namespace reshard
