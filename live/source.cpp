#include "live/source.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "src/base/interrupt.hpp"
#include "src/base/try.hpp"

namespace reshard::live {
namespace {

constexpr int packets_at_once = 16;    // then the other ranks, and the clock, have their turn
constexpr std::size_t mapped_max = 3;  // the newest version, the one before, and the next

}  // namespace

Result<Source> Source::connect(const std::string& endpoint, std::span<const WantedTensor> wanted, const Group& group,
                               std::chrono::milliseconds lease, Clock::time_point end) {
    RESHARD_TRY(Met & met, meet(endpoint, end));
    const auto ranks = static_cast<Index>(met.ranks.size());
    RESHARD_TRY(WantedMoves & moves, WantedMoves::make(std::move(met.tensors), ranks, wanted, met.checks_bytes));
    Source source;
    source.lease_ = lease;
    source.moves_ = std::make_unique<const WantedMoves>(std::move(moves));
    for (Connection& one : met.ranks) source.peers_.emplace_back().line = std::move(one);
    source.plan(group.rank());
    if (auto puts = open_ucx(met.devices)) source.puts_ = std::move(*puts);
    // All ranks of this job copy at once, and share the last cache.
    const Index bytes = std::accumulate(source.wanted_bytes_.begin(), source.wanted_bytes_.end(), Index{0});
    source.store_ = summed_store_for(saturating_multiply(bytes, group.size()));
    RESHARD_CHECK(source.send_rows(end));
    return source;
}

void Source::plan(Index rank) {
    for (std::size_t peer = 0; peer < peers_.size(); ++peer)
        peers_[peer].offsets = tile_offsets(moves_->tensors(), static_cast<Index>(peer));
    wanted_bytes_.assign(moves_->sent_dtypes().size(), 0);
    for (const Row& row : moves_->rows(rank)) {
        peers_[static_cast<std::size_t>(row.peer)].rows.push_back(row);
        wanted_bytes_[static_cast<std::size_t>(wanted_of(row))] += row.run_bytes * row.runs;
    }
    missing_ = wanted_bytes_;
}

Index Source::wanted_of(const Row& row) const {
    return static_cast<Index>(moves_->moves()[static_cast<std::size_t>(row.array)].wanted);
}

// Tells each rank of the publisher which rows to send of every version.
Result<void> Source::send_rows(Clock::time_point end) {
    for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
        Peer& peer = peers_[rank];
        if (!peer.line.stream) continue;
        Packet packet;
        if (const auto landing = make_landing(peer)) {
            packet.word = landing_word;
            peer.line.stream->queue(packet, *landing);
        }
        packet.word = rows_word;
        peer.line.stream->queue(packet, text_of(peer.rows, moves_->tensor_of_moves()));
        while (peer.line.stream->flush() && !peer.line.stream->is_flushed()) {
            pollfd one{peer.line.number(), POLLOUT, 0};
            if (Clock::now() >= end || Interrupt::raised())
                return fail(Code::backend, fmt::format("rank {} of the publisher reads nothing", rank));
            poll(&one, 1, 100);
        }
    }
    return {};
}

// Memory for the chunks of a rank of the publisher. If it cannot be had, they come through the stream.
Result<std::string> Source::make_landing(Peer& peer) const {
    if (!puts_) return fail(Code::unsupported, "chunks come through the stream");
    RESHARD_ASSIGN(peer.landing, puts_->landing());
    return peer.landing->text();
}

std::optional<Source::News> Source::next() {
    if (!ended_.empty()) {
        News news = std::move(ended_.back());
        ended_.pop_back();
        return news;
    }
    if (puts_) static_cast<void>(puts_->work());
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
    const Index ended = peer.taking ? peer.taking->generation : 0;
    peer.taking.reset();
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
        if (const auto bytes = bytes_with(peer, arrival)) {
            const bool is_late = !peer.taking || peer.taking->generation != arrival.packet.generation;
            if (!is_late) land(*peer.taking, *bytes);
            if (arrival.packet.word == landed_word) give_back(peer);
            if (is_late || !peer.taking->walk.is_over()) continue;
            return end(rank);
        }
        Message message = message_of(arrival.packet);
        const bool grants = message.word == Word::granted;
        if (arrival.kind != Arrival::Kind::packet || !is_word(arrival.packet) ||
            (grants && peer.line.stream->payload().size() != moves_->tensors().size() * sizeof(std::uint64_t)))
            return lose(rank, "it speaks another protocol");
        if (grants) {
            message.content =
                moves_->content_of(reinterpret_cast<const std::byte*>(peer.line.stream->payload().data()));
            peer.is_granted = message.generation == peer.wanted && message.generation != peer.fetched;
        }
        return News{rank, message};
    }
    if (peer.taking && Clock::now() - peer.taking->heard > lease_)
        return lose(rank, fmt::format("it has sent nothing of a version for {} ms", lease_.count()));
    return std::nullopt;
}

// The bytes that a packet brings or announces. nullopt: none, or more than a chunk has.
std::optional<std::string_view> Source::bytes_with(const Peer& peer, const Arrival& arrival) {
    const Packet& packet = arrival.packet;
    if (arrival.kind != Arrival::Kind::packet) return std::nullopt;
    if (packet.word == data_word) return peer.line.stream->payload();
    if (packet.word != landed_word || !peer.landing || packet.content > chunk_bytes) return std::nullopt;
    return std::string_view(reinterpret_cast<const char*>(peer.landing->chunk(peer.landed)), packet.content);
}

// The publisher may put another chunk in the place of the one that has landed.
void Source::give_back(Peer& peer) {
    Packet packet;
    packet.word = landed_word;
    ++peer.landed;
    peer.line.stream->queue(packet);
    static_cast<void>(peer.line.stream->flush());
}

void Source::land(Taking& taking, std::string_view bytes) {
    taking.heard = Clock::now();
    const auto* from = reinterpret_cast<const std::byte*>(bytes.data());
    taking.walk.walk(std::ssize(bytes), [&](const Row& row, Index run, Index place, Index count) {
        const auto wanted = static_cast<std::size_t>(wanted_of(row));
        taking.copy.piece(row, run, place, {from, static_cast<std::size_t>(count)}, taking.tiles[wanted].data());
        from += count;
        missing_[wanted] -= count;
    });
}

// Every element of a wanted tile comes once, since no rank of one job is a rank of the other.
void Source::begin(Index generation) {
    if (std::exchange(generation_, generation) == generation) return;
    missing_ = wanted_bytes_;
    part_ = 0;
}

// All rows have come from a rank.
Source::News Source::end(std::size_t rank) {
    Taking& taking = *peers_[rank].taking;
    const News news{rank, {}, taking.generation, {}};
    part_ = added(part_, taking.copy.end());
    peers_[rank].taking.reset();
    return news;
}

Index Source::copy_tensor() {
    Index wanted = index_max;
    for (const Peer& peer : peers_)
        if (peer.taking && peer.taking->memory) wanted = std::min(wanted, wanted_of(peer.rows[peer.taking->next]));
    Index copied = 0;
    for (std::size_t rank = 0; rank < peers_.size() && wanted != index_max; ++rank) {
        Peer& peer = peers_[rank];
        if (!peer.taking || !peer.taking->memory) continue;
        Taking& taking = *peer.taking;
        for (; taking.next < peer.rows.size() && wanted_of(peer.rows[taking.next]) == wanted; ++taking.next) {
            const Row& row = peer.rows[taking.next];
            const auto tensor = moves_->moves()[static_cast<std::size_t>(row.array)].tensor;
            taking.copy.row(row, taking.memory->bytes().data() + peer.offsets[tensor],
                            taking.tiles[static_cast<std::size_t>(wanted)].data());
            copied += row.run_bytes * row.runs;
        }
        if (taking.next == peer.rows.size()) ended_.push_back(end(rank));
    }
    if (copied > 0) missing_[static_cast<std::size_t>(wanted)] -= copied;
    if (store_ == Store::streaming) store_fence();  // peers that hear of the tensor read it
    return copied;
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
    const Index bytes = digests + std::ssize(moves_->tensors()) * static_cast<Index>(sizeof(std::uint64_t));
    Message message = message_of(arrival.packet);
    if (!peer.memory || peer.version != message.version) {
        RESHARD_CHECK(map(peer, std::move(arrival.descriptor), bytes));
        peer.version = message.version;
    }
    message.content = moves_->content_of(peer.memory->bytes().data() + digests);
    return message;
}

void Source::wait(Clock::time_point end) const {
    if (std::ranges::any_of(peers_, [](const Peer& peer) { return peer.taking && peer.taking->memory; })) return;
    std::vector<int> numbers;
    for (const Peer& peer : peers_)
        if (!peer.is_lost) numbers.push_back(peer.line.number());
    if (puts_) numbers.push_back(puts_->number());
    if (!puts_ || puts_->work()) static_cast<void>(wait_readable(numbers, end));
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
    const bool is_remote = peer.line.stream.has_value();
    begin(fetch.generation);
    if (is_remote) {
        peer.is_granted = false;
        peer.fetched = fetch.generation;
        if (peer.is_lost) return fail(Code::backend, fmt::format("rank {} of the publisher is lost", rank));
    } else if (!peer.memory || peer.version != fetch.version) {
        return fail(Code::backend,
                    fmt::format("rank {} of the publisher has granted another version than {}", rank, fetch.version));
    }
    if (peer.rows.empty()) return true;
    const RowCopy copy(*moves_, static_cast<Index>(rank), is_remote ? Store::cached : store_);
    peer.taking.emplace(
        Taking{fetch.generation, tiles, copy, RowWalk(peer.rows), Clock::now(), is_remote ? nullptr : peer.memory});
    return false;
}

}  // namespace reshard::live
