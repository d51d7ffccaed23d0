#include "live/source.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "src/base/interrupt.hpp"
#include "src/base/try.hpp"
#include "src/copy/kernels/dispatch.hpp"
#include "src/tables/dtypes.hpp"

namespace reshard::live {
namespace {

constexpr int packets_at_once = 16;    // then the other ranks, and the clock, have their turn
constexpr std::size_t mapped_max = 3;  // the newest version, the one before, and the next

// The same layout over higher device numbers, so that no rank of one job is a rank of the other.
Layout after(Layout layout, Index ranks) {
    std::vector<Index> devices;
    for (Index position = 0; position < device_count(layout.mesh); ++position)
        devices.push_back(device_at(layout.mesh, position) + ranks);
    layout.mesh.devices = DeviceList(std::move(devices));
    return layout;
}

}  // namespace

Result<Source> Source::connect(const std::string& endpoint, std::span<const NamedTensor> wanted, Index rank,
                               std::chrono::milliseconds lease, Clock::time_point end) {
    RESHARD_TRY(Met & met, meet(endpoint, end));
    Source source;
    source.lease_ = lease;
    source.tensors_ = std::move(met.tensors);
    source.checks_bytes_ = met.checks_bytes;
    for (Connection& one : met.ranks) source.peers_.emplace_back().line = std::move(one);
    RESHARD_CHECK(source.plan(wanted, rank));
    const std::vector<DType> sent = source.sent_dtypes();
    for (std::size_t i = 0; i < wanted.size(); ++i)
        source.wanted_bytes_.push_back(static_cast<Index>(tile_count(wanted[i].layout, rank)) * size_of(sent[i]));
    source.missing_ = source.wanted_bytes_;
    RESHARD_CHECK(source.send_rows(end));
    return source;
}

// Tells each rank of the publisher which rows to send of every version.
Result<void> Source::send_rows(Clock::time_point end) {
    for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
        Peer& peer = peers_[rank];
        if (!peer.line.stream) continue;
        Packet packet;
        packet.word = rows_word;
        peer.line.stream->queue(packet, text_of(peer.rows, arrays_));
        while (peer.line.stream->flush() && !peer.line.stream->is_flushed()) {
            pollfd one{peer.line.number(), POLLOUT, 0};
            if (Clock::now() >= end || Interrupt::raised())
                return fail(Code::backend, fmt::format("rank {} of the publisher reads nothing", rank));
            poll(&one, 1, 100);
        }
    }
    return {};
}

Result<void> Source::plan(std::span<const NamedTensor> wanted, Index rank) {
    const auto ranks = static_cast<Index>(peers_.size());
    std::vector<Problem> problems;
    for (const NamedTensor& one : wanted) {
        const auto found = std::ranges::find(tensors_, one.name, &NamedTensor::name);
        if (found == tensors_.end())
            return fail(Code::mismatch, fmt::format("the publisher has no tensor {}", one.name));
        const DType sent = found->layout.dtype;
        const DType asked = one.layout.dtype;
        if (sent != asked && !tables::can_cast(sent, asked))
            return fail(Code::unsupported, fmt::format("tensor {} is {} at the publisher and cannot be cast to {}",
                                                       one.name, name(sent), name(asked)));
        Layout target = after(one.layout, ranks);
        target.dtype = sent;  // this rank casts it when it is whole
        if (auto same = same_array(found->layout, target); !same)
            return fail(Code::mismatch, fmt::format("tensor {}: {}", one.name, same.error().message));
        arrays_.push_back(found - tensors_.begin());
        problems.push_back({found->layout, std::move(target)});
    }
    RESHARD_TRY(const RowSchedule& schedule, RowSchedule::make(problems));
    for (const Row& row : schedule.rows(ranks + rank, RowSide::receive))
        peers_[static_cast<std::size_t>(row.peer)].rows.push_back(row);
    for (std::size_t peer = 0; peer < peers_.size(); ++peer)
        peers_[peer].offsets = tile_offsets(tensors_, static_cast<Index>(peer));
    return {};
}

std::vector<DType> Source::sent_dtypes() const {
    std::vector<DType> dtypes;
    for (const Index array : arrays_) dtypes.push_back(tensors_[static_cast<std::size_t>(array)].layout.dtype);
    return dtypes;
}

std::optional<Source::News> Source::next() {
    for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
        if (peers_[rank].is_lost) continue;
        auto news = peers_[rank].line.stream ? remote_news(rank) : local_news(rank);
        if (news) return news;
    }
    return std::nullopt;
}

Source::News Source::lose(std::size_t rank, const std::string& why) {
    Peer& peer = peers_[rank];
    peer.is_lost = true;
    const Index ended = peer.landing ? peer.landing->generation : 0;
    peer.landing.reset();
    peer.mapped.clear();                                           // it would stay in memory until this rank reconnects
    if (peer.line.stream) peer.line.stream.emplace(Descriptor());  // late bytes come no more
    return {rank, {}, ended, fmt::format("rank {} of the publisher is lost: {}", rank, why)};
}

std::optional<Source::News> Source::local_news(std::size_t rank) {
    Peer& peer = peers_[rank];
    Arrival arrival = receive_packet(peer.line.socket);
    if (arrival.kind == Arrival::Kind::nothing) return std::nullopt;
    if (arrival.kind != Arrival::Kind::packet || !is_word(arrival.packet))
        return lose(rank, "its connection is closed");
    const Message message = message_of(arrival.packet);
    if (message.word != Word::granted) return News{rank, message};
    const auto with_content = granted(peer, std::move(arrival));
    return with_content ? News{rank, *with_content} : lose(rank, with_content.error().message);
}

// The rows follow the grant, so nothing is read between the grant and fetch().
std::optional<Source::News> Source::remote_news(std::size_t rank) {
    Peer& peer = peers_[rank];
    static_cast<void>(peer.line.stream->flush());  // receive() notices a closed connection
    for (int packets = 0; packets < packets_at_once && !peer.is_granted; ++packets) {
        const Arrival arrival = peer.line.stream->receive();
        if (arrival.kind == Arrival::Kind::nothing) break;
        if (arrival.kind == Arrival::Kind::closed) return lose(rank, "its connection is closed");
        if (arrival.packet.word == data_word && arrival.kind == Arrival::Kind::packet) {
            if (!peer.landing || peer.landing->generation != arrival.packet.generation) continue;  // late
            land(*peer.landing, peer.line.stream->payload());
            if (!peer.landing->walk.is_over()) continue;
            peer.landing.reset();
            return News{rank, {}, arrival.packet.generation};
        }
        Message message = message_of(arrival.packet);
        const bool grants = message.word == Word::granted;
        if (arrival.kind != Arrival::Kind::packet || !is_word(arrival.packet) ||
            (grants && peer.line.stream->payload().size() != tensors_.size() * sizeof(std::uint64_t)))
            return lose(rank, "it speaks another protocol");
        if (grants) {
            message.content = content_of(reinterpret_cast<const std::byte*>(peer.line.stream->payload().data()));
            peer.is_granted = message.generation == peer.wanted && message.generation != peer.fetched;
        }
        return News{rank, message};
    }
    if (peer.landing && Clock::now() - peer.landing->heard > lease_)
        return lose(rank, fmt::format("it has sent nothing of a version for {} ms", lease_.count()));
    return std::nullopt;
}

void Source::land(Landing& landing, std::string_view bytes) {
    landing.heard = Clock::now();
    const char* from = bytes.data();
    landing.walk.walk(std::ssize(bytes), [&](const Row& row, Index run, Index place, Index count) {
        const Index to = row.target_offset + run * row.target_stride + place;
        std::memcpy(landing.tiles[static_cast<std::size_t>(row.array)].data() + to, from,
                    static_cast<std::size_t>(count));
        from += count;
        missing_[static_cast<std::size_t>(row.array)] -= count;
    });
}

// Every element of a wanted tile comes once, since no rank of one job is a rank of the other.
void Source::begin(Index generation) {
    if (std::exchange(generation_, generation) != generation) missing_ = wanted_bytes_;
}

// The digest of the version is the sum over the wanted tensors.
std::uint64_t Source::content_of(const std::byte* digests) const {
    std::uint64_t sum = 0;
    for (const Index array : arrays_) {
        std::uint64_t digest = 0;
        std::memcpy(&digest, digests + array * static_cast<Index>(sizeof digest), sizeof digest);
        sum = added(sum, digest);
    }
    return sum;
}

// A publisher writes its versions into few segments in turn. To map one again costs more than to copy its bytes.
Result<void> Source::map(Peer& peer, Descriptor memory, Index bytes) {
    const auto known = std::ranges::find_if(peer.mapped, [&](const auto& segment) { return segment->is(memory); });
    if (known != peer.mapped.end()) {
        std::rotate(known, known + 1, peer.mapped.end());
    } else {
        RESHARD_TRY(Segment & segment, Segment::open(std::move(memory), bytes));
        if (peer.mapped.size() == mapped_max) peer.mapped.erase(peer.mapped.begin());
        peer.mapped.push_back(std::make_shared<const Segment>(std::move(segment)));
    }
    peer.memory = peer.mapped.back();
    return {};
}

// Finds the memory that came with a grant.
Result<Message> Source::granted(Peer& peer, Arrival arrival) const {
    const Index digests = peer.offsets.back();
    const Index bytes = digests + std::ssize(tensors_) * static_cast<Index>(sizeof(std::uint64_t));
    Message message = message_of(arrival.packet);
    if (!peer.memory || peer.version != message.version) {
        RESHARD_CHECK(map(peer, std::move(arrival.descriptor), bytes));
        peer.version = message.version;
    }
    message.content = content_of(peer.memory->bytes().data() + digests);
    return message;
}

void Source::wait(Clock::time_point end) const {
    std::vector<int> numbers;
    for (const Peer& peer : peers_)
        if (!peer.is_lost) numbers.push_back(peer.line.number());
    static_cast<void>(wait_readable(numbers, end));
}

void Source::send(std::size_t rank, const Message& message) {
    Peer& peer = peers_[rank];
    if (peer.is_lost) return;
    const bool releases = message.word == Word::release;
    if (!peer.line.stream) {
        Packet packet = packet_of(message);
        if (message.word == Word::want) packet.bytes = bytes_of(peer.rows);  // for the status of the session
        static_cast<void>(send_packet(peer.line.socket, packet));
        // The memory of a version may be used for another one after its release.
        if (releases) peer.memory.reset();
        return;
    }
    peer.line.stream->queue(packet_of(message));
    static_cast<void>(peer.line.stream->flush());
    peer.wanted = releases ? 0 : message.generation;
    peer.is_granted = peer.is_granted && !releases;
}

Result<bool> Source::fetch(std::size_t rank, const Fetch& fetch, std::span<const std::span<std::byte>> tiles) {
    Peer& peer = peers_[rank];
    begin(fetch.generation);
    if (peer.line.stream) {
        peer.is_granted = false;
        peer.fetched = fetch.generation;
        if (peer.is_lost) return fail(Code::backend, fmt::format("rank {} of the publisher is lost", rank));
        const Landing landing{fetch.generation, RowWalk(peer.rows), tiles, Clock::now()};
        if (!peer.rows.empty()) peer.landing.emplace(landing);
        return peer.rows.empty();
    }
    if (!peer.memory || peer.version != fetch.version)
        return fail(Code::backend,
                    fmt::format("rank {} of the publisher has granted another version than {}", rank, fetch.version));
    const Store store = store_for(std::accumulate(wanted_bytes_.begin(), wanted_bytes_.end(), Index{0}));
    const auto copy = copy_kernels().rows[static_cast<std::size_t>(store)];
    for (const Row& row : peer.rows) {
        const auto array = static_cast<std::size_t>(arrays_[static_cast<std::size_t>(row.array)]);
        const std::byte* from = peer.memory->bytes().data() + peer.offsets[array] + row.source_offset;
        std::byte* to = tiles[static_cast<std::size_t>(row.array)].data() + row.target_offset;
        copy({row.runs, row.run_bytes, row.source_stride, row.target_stride}, from, to);
        missing_[static_cast<std::size_t>(row.array)] -= row.run_bytes * row.runs;
    }
    if (store == Store::streaming) store_fence();
    return true;
}

}  // namespace reshard::live
