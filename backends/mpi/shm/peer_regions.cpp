#include "backends/mpi/shm/peer_regions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "backends/mpi/base/polled.hpp"
#include "src/base/try.hpp"

namespace reshard::mpi {
namespace {

// A box and where it lies, as numbers: array, whether the writer sends it, sides, offset, strides.
using Numbers = std::vector<Index>;

void write(Numbers& numbers, std::size_t array, bool sends, const Box& box, const Region& region) {
    numbers.insert(numbers.end(), {static_cast<Index>(array), sends ? 1 : 0, static_cast<Index>(box.size())});
    for (const Interval& side : box) numbers.insert(numbers.end(), {side.begin, side.end});
    numbers.push_back(region.offset_bytes);
    numbers.insert(numbers.end(), region.strides_bytes.begin(), region.strides_bytes.end());
}

struct PeerBox {
    std::size_t array = 0;
    bool sends = false;
    Box box;
    Index offset_bytes = 0;
    std::vector<Index> strides_bytes;
};

std::vector<PeerBox> read(std::span<const Index> numbers) {
    std::vector<PeerBox> boxes;
    for (std::size_t at = 0; at < numbers.size();) {
        PeerBox one{static_cast<std::size_t>(numbers[at]), numbers[at + 1] != 0, {}, 0, {}};
        const auto dims = static_cast<std::size_t>(numbers[at + 2]);
        at += 3;
        for (std::size_t k = 0; k < dims; ++k, at += 2) one.box.push_back({numbers[at], numbers[at + 1]});
        one.offset_bytes = numbers[at++];
        for (std::size_t k = 0; k < dims; ++k) one.strides_bytes.push_back(numbers[at++]);
        boxes.push_back(std::move(one));
    }
    return boxes;
}

// Returns the boxes that each rank wrote to this one.
Result<std::vector<std::vector<PeerBox>>> deliver(MPI_Comm communicator, const std::vector<Numbers>& to_each) {
    const std::size_t ranks = to_each.size();
    // The numbers; for each rank, how many there are and where they start.
    struct Packed {
        std::vector<Index> numbers;
        std::vector<int> counts;
        std::vector<int> starts;
    };
    Packed sent;
    for (const Numbers& numbers : to_each) {
        sent.starts.push_back(static_cast<int>(sent.numbers.size()));
        sent.counts.push_back(static_cast<int>(numbers.size()));
        sent.numbers.insert(sent.numbers.end(), numbers.begin(), numbers.end());
    }
    Packed got;
    RESHARD_ASSIGN(got.counts, exchanged(communicator, sent.counts));
    got.starts.resize(ranks);
    std::exclusive_scan(got.counts.begin(), got.counts.end(), got.starts.begin(), Index{0});
    const Index all = std::accumulate(got.counts.begin(), got.counts.end(), Index{0});
    const std::array<Index, 1> own = {std::max(all, std::ssize(sent.numbers))};
    RESHARD_TRY(const auto& most, reduced(communicator, own, MPI_INT64_T, MPI_MAX));
    if (most.front() > std::numeric_limits<int>::max())
        return fail(Code::unsupported, "too many boxes for one exchange");
    got.numbers.resize(static_cast<std::size_t>(all));
    using Both = std::pair<Packed, Packed>;
    RESHARD_TRY(
        const auto& both,
        polled("MPI_Ialltoallv", Both{std::move(sent), std::move(got)}, [&](Both& buffers, MPI_Request* request) {
            auto& [to, from] = buffers;
            return MPI_Ialltoallv(to.numbers.data(), to.counts.data(), to.starts.data(), MPI_INT64_T,
                                  from.numbers.data(), from.counts.data(), from.starts.data(), MPI_INT64_T,
                                  communicator, request);
        }));
    const Packed& brought = both.second;
    std::vector<std::vector<PeerBox>> boxes;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        const auto from = std::span(brought.numbers).subspan(static_cast<std::size_t>(brought.starts[rank]));
        boxes.push_back(read(from.first(static_cast<std::size_t>(brought.counts[rank]))));
    }
    return boxes;
}

// Matches this rank's transfers, in order, with the boxes that the peers wrote for the same direction.
class Matcher {
public:
    Matcher(const std::vector<std::vector<PeerBox>>& boxes, bool sends)
        : boxes_(boxes), next_(boxes.size()), sends_(sends) {}

    Result<PeerRegion> match(std::size_t array, const RankStep& step, const Transfer& transfer, const Region& mine) {
        const auto peer = static_cast<std::size_t>(transfer.peer);
        const PeerBox* other = peer < boxes_.size() ? next(peer) : nullptr;
        if (other == nullptr || other->array != array || other->box != transfer.box) {
            return fail(Code::backend,
                        fmt::format("array {}, step {} ({}): {} rank {} {}", array, step.step + 1,
                                    name(step.schedule.kind), sends_ ? "sends to" : "receives from", transfer.peer,
                                    sends_ ? "another box than it receives" : "another box than it sends"));
        }
        const Region theirs{other->offset_bytes, size_of(sends_ ? step.to_dtype : step.from_dtype), mine.extents,
                            other->strides_bytes};
        const ElementCast cast = cast_of(step.from_dtype, step.to_dtype);
        return sends_ ? PeerRegion{array, peer, mine, theirs, cast} : PeerRegion{array, peer, theirs, mine, cast};
    }
    /// Fails if a peer has more boxes than were matched.
    Result<void> all_matched(std::span<const ArrayStep> steps) {
        for (std::size_t peer = 0; peer < boxes_.size(); ++peer) {
            const PeerBox* more = next(peer);
            if (more == nullptr) continue;
            const bool known = more->array < steps.size() && steps[more->array].step != nullptr;
            const std::string step = known ? fmt::format(", step {}", steps[more->array].step->step + 1) : "";
            return fail(Code::backend, fmt::format("array {}{}: rank {} {} a box that this rank does not know of",
                                                   more->array, step, peer, more->sends ? "sends" : "receives"));
        }
        return {};
    }

private:
    const PeerBox* next(std::size_t peer) {
        std::size_t& at = next_[peer];
        while (at < boxes_[peer].size() && boxes_[peer][at].sends == sends_) ++at;  // its sends are my receives
        return at < boxes_[peer].size() ? &boxes_[peer][at++] : nullptr;
    }

    const std::vector<std::vector<PeerBox>>& boxes_;
    std::vector<std::size_t> next_;
    bool sends_;
};

}  // namespace

Index sent_bytes(const PeerRegion& part) { return bytes_of(part.cast.narrows() ? part.target : part.source); }

Result<PeerRegions> exchange_parts(MPI_Comm communicator, std::span<const ArrayStep> steps) {
    const Index rank = rank_of(communicator);
    const Index ranks = size_of_communicator(communicator);
    std::vector<Numbers> to_each(static_cast<std::size_t>(ranks));
    const auto visit = [&](const auto& body) -> Result<void> {
        for (std::size_t array = 0; array < steps.size(); ++array) {
            if (steps[array].step == nullptr) continue;
            const RankStep& step = *steps[array].step;
            for (const bool sends : {true, false}) {
                const Index element_bytes = size_of(sends ? step.from_dtype : step.to_dtype);
                for (const Transfer& transfer : sends ? step.schedule.sends : step.schedule.receives) {
                    if (count(transfer.box) == 0) continue;
                    const Region mine = region_of(sends ? step.from : step.to, transfer.box, element_bytes);
                    RESHARD_CHECK(body(array, step, sends, transfer, mine));
                }
            }
        }
        return {};
    };
    RESHARD_CHECK(visit([&](std::size_t array, const RankStep&, bool sends, const Transfer& transfer,
                            const Region& mine) -> Result<void> {
        if (transfer.peer != rank && transfer.peer >= 0 && transfer.peer < ranks) {
            write(to_each[static_cast<std::size_t>(transfer.peer)], array, sends, transfer.box, mine);
        }
        return {};
    }));
    RESHARD_TRY(const auto& boxes, deliver(communicator, to_each));
    PeerRegions parts;
    Matcher receivers(boxes, true);
    Matcher senders(boxes, false);
    RESHARD_CHECK(visit([&](std::size_t array, const RankStep& step, bool sends, const Transfer& transfer,
                            const Region& mine) -> Result<void> {
        if (transfer.peer == rank) {
            const Region source = region_of(step.from, transfer.box, size_of(step.from_dtype));
            const ElementCast cast = cast_of(step.from_dtype, step.to_dtype);
            parts.own.push_back({array, static_cast<std::size_t>(rank), source, mine, cast});
            return {};
        }
        RESHARD_TRY(auto& part, (sends ? receivers : senders).match(array, step, transfer, mine));
        (sends ? parts.sends : parts.receives).push_back(std::move(part));
        return {};
    }));
    for (Matcher* one : {&receivers, &senders}) {
        RESHARD_CHECK(one->all_matched(steps));
    }
    return parts;
}

}  // namespace reshard::mpi
