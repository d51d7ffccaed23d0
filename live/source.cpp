#include "live/source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "src/base/printable.hpp"
#include "src/base/try.hpp"

namespace reshard::live {
namespace {

struct Welcome {
    Descriptor socket;
    Packet packet;
    std::string text;
};

// Connects to one rank of the publisher, and reads the text of its tensors.
Result<Welcome> meet(const std::string& endpoint, Clock::time_point end) {
    RESHARD_TRY(Descriptor & socket, connect_to(endpoint, Kind::packets, end));
    const int number = socket.number();
    if (!wait_readable({&number, 1}, end)) return fail(Code::backend, fmt::format("{} is silent", in_quotes(endpoint)));
    Arrival arrival = receive_packet(socket);
    if (arrival.kind != Arrival::Kind::packet || arrival.packet.word != hello || !arrival.descriptor.is_open())
        return fail(Code::backend,
                    fmt::format("{} is no publisher of protocol {}", in_quotes(endpoint), protocol_number));
    RESHARD_TRY(const Segment& text, Segment::open(std::move(arrival.descriptor), arrival.packet.bytes));
    return Welcome{std::move(socket), arrival.packet,
                   std::string(reinterpret_cast<const char*>(text.bytes().data()),
                               static_cast<std::size_t>(arrival.packet.bytes))};
}

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
                               Clock::time_point end) {
    Source source;
    std::string text;
    std::uint32_t ranks = 1;
    for (std::uint32_t peer = 0; peer < ranks; ++peer) {
        RESHARD_TRY(Welcome & one, meet(fmt::format("{}.{}", endpoint, peer), end));
        if (peer == 0) {
            ranks = one.packet.ranks;
            text = one.text;
            source.checks_bytes_ = one.packet.checks_bytes != 0;
        }
        if (one.packet.rank != peer || one.packet.ranks != ranks || one.text != text)
            return fail(Code::mismatch,
                        fmt::format("rank {} at {} is of another publisher than rank 0", peer, in_quotes(endpoint)));
        source.peers_.push_back({std::move(one.socket), false, {}, {}, {}});
    }
    RESHARD_ASSIGN(source.tensors_, tensors_of(text));
    RESHARD_CHECK(source.plan(wanted, rank));
    return source;
}

Result<void> Source::plan(std::span<const NamedTensor> wanted, Index rank) {
    const auto ranks = static_cast<Index>(peers_.size());
    std::vector<Problem> problems;
    for (const NamedTensor& one : wanted) {
        const auto found = std::ranges::find(tensors_, one.name, &NamedTensor::name);
        if (found == tensors_.end())
            return fail(Code::mismatch, fmt::format("the publisher has no tensor {}", one.name));
        if (auto same = same_array(found->layout, one.layout); !same)
            return fail(Code::mismatch, fmt::format("tensor {}: {}", one.name, same.error().message));
        arrays_.push_back(found - tensors_.begin());
        problems.push_back({found->layout, after(one.layout, ranks)});
    }
    RESHARD_TRY(const RowSchedule& schedule, RowSchedule::make(problems));
    for (const Row& row : schedule.rows(ranks + rank, RowSide::receive))
        peers_[static_cast<std::size_t>(row.peer)].rows.push_back(row);
    for (std::size_t peer = 0; peer < peers_.size(); ++peer)
        peers_[peer].offsets = tile_offsets(tensors_, static_cast<Index>(peer));
    return {};
}

std::optional<Source::News> Source::next() {
    for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
        Peer& peer = peers_[rank];
        if (peer.is_lost) continue;
        Arrival arrival = receive_packet(peer.socket);
        if (arrival.kind == Arrival::Kind::nothing) continue;
        std::string reason = "its connection is closed";
        if (arrival.kind == Arrival::Kind::packet && arrival.packet.word != hello) {
            Message message = message_of(arrival.packet);
            if (message.word != Word::granted) return News{rank, message, {}};
            auto with_content = granted(peer, std::move(arrival));
            if (with_content) return News{rank, *with_content, {}};
            reason = with_content.error().message;
        }
        peer.is_lost = true;
        return News{rank, std::nullopt, fmt::format("rank {} of the publisher is lost: {}", rank, reason)};
    }
    return std::nullopt;
}

// Maps the memory that came with a grant. The digest of the version is the sum over the wanted tensors.
Result<Message> Source::granted(Peer& peer, Arrival arrival) const {
    const Index digests = peer.offsets.back();
    const Index bytes = digests + std::ssize(tensors_) * static_cast<Index>(sizeof(std::uint64_t));
    Message message = message_of(arrival.packet);
    if (!peer.memory || peer.memory->first != message.version) {
        peer.memory.reset();
        RESHARD_TRY(Segment & segment, Segment::open(std::move(arrival.descriptor), bytes));
        peer.memory.emplace(message.version, std::move(segment));
    }
    message.content = 0;
    for (const Index array : arrays_) {
        std::uint64_t digest = 0;
        std::memcpy(&digest, peer.memory->second.bytes().data() + digests + array * static_cast<Index>(sizeof digest),
                    sizeof digest);
        message.content = added(message.content, digest);
    }
    return message;
}

void Source::wait(Clock::time_point end) const {
    std::vector<int> numbers;
    for (const Peer& peer : peers_)
        if (!peer.is_lost) numbers.push_back(peer.socket.number());
    static_cast<void>(wait_readable(numbers, end));
}

void Source::send(std::size_t rank, const Message& message) {
    Peer& peer = peers_[rank];
    if (!peer.is_lost) static_cast<void>(send_packet(peer.socket, packet_of(message)));
    // The memory of a version may be used for another one after its release.
    if (message.word == Word::release) peer.memory.reset();
}

Result<void> Source::copy(std::size_t rank, Index version, std::span<std::byte> target,
                          std::span<const Index> offsets) {
    const Peer& peer = peers_[rank];
    if (!peer.memory || peer.memory->first != version)
        return fail(Code::backend,
                    fmt::format("rank {} of the publisher has granted another version than {}", rank, version));
    for (const Row& row : peer.rows) {
        const auto array = static_cast<std::size_t>(arrays_[static_cast<std::size_t>(row.array)]);
        const std::byte* from = peer.memory->second.bytes().data() + peer.offsets[array] + row.source_offset;
        std::byte* to = target.data() + offsets[static_cast<std::size_t>(row.array)] + row.target_offset;
        for (Index run = 0; run < row.runs; ++run, from += row.source_stride, to += row.target_stride)
            std::memcpy(to, from, static_cast<std::size_t>(row.run_bytes));
    }
    return {};
}

}  // namespace reshard::live
