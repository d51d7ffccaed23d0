// An exchange of boxes on a backend: prepare, bind and run.
#include "reshard/boxes/exchange.hpp"

#include <fmt/format.h>

#include "src/base/hash.hpp"
#include "src/base/try.hpp"
#include "src/execute/boxes/gather.hpp"
#include "src/execute/boxes/lower_boxes.hpp"
#include "src/execute/boxes/rounds.hpp"

namespace reshard {

/// The prepared rounds.
struct BoxExchange::State {
    Rounds rounds;
};

namespace {

void add(std::vector<Index>& numbers, const std::vector<Box>& boxes) {
    numbers.push_back(std::ssize(boxes));
    for (const Box& box : boxes)
        for (const Interval& side : box) numbers.insert(numbers.end(), {side.begin, side.end});
}

std::vector<Box> take(std::span<const Index>& numbers, std::size_t dims) {
    std::vector<Box> boxes(static_cast<std::size_t>(numbers.front()), Box(dims));
    numbers = numbers.subspan(1);
    for (Box& box : boxes)
        for (Interval& side : box) {
            side = {numbers[0], numbers[1]};
            numbers = numbers.subspan(2);
        }
    return boxes;
}

std::vector<Index> numbers_of(const RankBoxes& boxes) {
    std::vector<Index> numbers;
    add(numbers, boxes.have);
    add(numbers, boxes.want);
    return numbers;
}

Hash array_hash(DType dtype, const std::vector<Index>& shape, std::size_t arrays) {
    Hash hash;
    hash.add(name(dtype));
    for (const Index extent : shape) hash.add(extent);
    hash.add(static_cast<Index>(arrays));
    return hash;
}

std::uint64_t fingerprint(const BoxTable& table, std::size_t arrays) {
    Hash hash = array_hash(table.dtype, table.shape, arrays);
    add(hash, table);
    return hash.value();
}

Result<LoweredBoxes> lower(BoxTable& table, const Backend& backend, const BoxStorages& storages) {
    const Index ranks = std::ssize(table.ranks);
    if (ranks > backend.size())
        return fail(Code::mismatch, fmt::format("the table has {} ranks, the backend has {}", ranks, backend.size()));
    for (Index rank = 0; rank < ranks; ++rank)
        RESHARD_CHECK(check_within(table.shape, table.ranks[static_cast<std::size_t>(rank)], rank));
    table.ranks.resize(static_cast<std::size_t>(backend.size()));
    const BoxRoutes routes(table);
    RESHARD_CHECK(routes.check(backend.rank()));
    return lower_boxes(table, routes, backend.rank(), storages);
}

BoxTraffic times(BoxTraffic traffic, std::size_t arrays) {
    for (Index* bytes : {&traffic.received_bytes, &traffic.sent_bytes, &traffic.copied_bytes})
        *bytes = saturating_multiply(*bytes, static_cast<Index>(arrays));
    return traffic;
}

}  // namespace

Result<BoxExchange> BoxExchange::prepare(DType dtype, std::vector<Index> shape, const RankBoxes& own, Backend& backend,
                                         const BoxStorages& storages, std::size_t arrays) {
    const auto valid = check_within(shape, own, backend.rank());
    RESHARD_CHECK(backend.agree(valid.map([&] { return array_hash(dtype, shape, arrays).value(); })));
    RESHARD_TRY(const auto& numbers, gather(numbers_of(own), backend));
    BoxTable table{dtype, std::move(shape), {}};
    for (std::span<const Index> of_rank : numbers) {
        RankBoxes& boxes = table.ranks.emplace_back();
        boxes.have = take(of_rank, table.shape.size());
        boxes.want = take(of_rank, table.shape.size());
    }
    return prepare(table, backend, storages, arrays);
}

Result<BoxExchange> BoxExchange::prepare(const BoxTable& given, Backend& backend, const BoxStorages& storages,
                                         std::size_t arrays) {
    BoxTable table = given;
    auto lowered = lower(table, backend, storages);
    // A rank that failed still takes part, so that the others are told instead of waiting for it.
    RESHARD_CHECK(backend.agree(lowered.map([&](const auto&) { return fingerprint(given, arrays); })));
    BoxExchange made;
    made.dtype_ = table.dtype;
    made.arrays_ = arrays;
    made.rank_ = backend.rank();
    made.have_bytes_ = lowered->have_bytes;
    made.want_bytes_ = lowered->want_bytes;
    made.traffic_ = times(lowered->traffic, arrays);
    std::vector<std::vector<RankPlan>> rounds;
    for (const RankPlan& round : lowered->rounds) rounds.emplace_back(arrays, round);
    RESHARD_TRY(auto& prepared, Rounds::prepare(std::move(rounds), backend));
    made.state_ = std::make_shared<State>(State{std::move(prepared)});
    return made;
}

Index BoxExchange::staging_bytes() const { return state_->rounds.staging_bytes(); }

std::string BoxExchange::describe() const { return state_->rounds.describe(rank_, traffic_); }

void BoxExchange::report_failure(const Error& why) { state_->rounds.report_failure(why); }

Result<std::unique_ptr<Bound>> BoxExchange::bind(std::span<const Buffers> buffers) {
    return state_->rounds.bind(buffers, "the memory of owned boxes", "the memory of wanted boxes");
}

Result<void> BoxExchange::run(ConstElements have, Elements want) {
    for (const auto& given : {have.dtype, want.dtype})
        if (given && *given != dtype_)
            return fail(Code::mismatch,
                        fmt::format("elements of {} were given for boxes of {}", name(*given), name(dtype_)));
    const Buffers buffers{have.bytes, want.bytes, {}};
    RESHARD_TRY(auto& bound, bind(std::span(&buffers, 1)));
    RESHARD_TRY(auto& ticket, bound->start());
    return ticket->wait();
}

}  // namespace reshard
