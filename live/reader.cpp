#include "live/reader.hpp"

#include <algorithm>
#include <cstring>
#include <deque>

namespace reshard::live {
namespace {

constexpr int chunks_at_once = 4;  // then it is another reader's turn

class LocalReader : public Reader {
public:
    explicit LocalReader(Descriptor socket) : socket_(std::move(socket)) {}
    [[nodiscard]] int number() const override { return socket_.number(); }

    void send(const Message& message, const std::shared_ptr<Segment>& memory) override {
        Packet packet = packet_of(message);
        if (memory) packet.bytes = std::ssize(memory->bytes());
        // hear() notices a closed connection.
        static_cast<void>(send_packet(socket_, packet, memory ? memory->number() : -1));
    }

    // If memory is short, nobody answers, and the question fails at its limit.
    void send_status(const std::string& text) override {
        const auto segment = Segment::make(std::ssize(text));
        if (!segment) return;
        std::ranges::copy(text, reinterpret_cast<char*>(segment->bytes().data()));
        Packet packet;
        packet.word = status_word;
        packet.bytes = std::ssize(text);
        static_cast<void>(send_packet(socket_, packet, segment->number()));
    }

    [[nodiscard]] Heard hear() override {
        const Arrival arrival = receive_packet(socket_);
        if (arrival.kind != Arrival::Kind::packet) return {arrival.kind};
        if (arrival.packet.word == status_word) return {arrival.kind, {}, true};
        if (!is_word(arrival.packet)) return {Arrival::Kind::strange};
        const Message message = message_of(arrival.packet);
        if (message.word == Word::want) bytes_ = arrival.packet.bytes;
        return {arrival.kind, message};
    }

    [[nodiscard]] Index bytes() const override { return bytes_; }
    [[nodiscard]] std::string transport() const override { return "memory"; }

private:
    Descriptor socket_;
    Index bytes_ = 0;
};

class RemoteReader : public Reader {
public:
    RemoteReader(Stream stream, const VersionMemory& layout, RateLimit& limit, Puts* puts)
        : stream_(std::move(stream)), layout_(layout), limit_(limit), puts_(puts) {}
    [[nodiscard]] int number() const override { return stream_.number(); }

    // A grant is repeated when the lease is renewed. The rows are sent once.
    void send(const Message& message, const std::shared_ptr<Segment>& memory) override {
        if (memory) {
            const auto digests = memory->bytes().subspan(static_cast<std::size_t>(layout_.offsets.back()));
            stream_.queue(packet_of(message), {reinterpret_cast<const char*>(digests.data()),
                                               layout_.tiles.size() * sizeof(std::uint64_t)});
            if (message.generation > generation_) begin(message, memory);
        } else {
            stream_.queue(packet_of(message));
        }
        write();
    }

    void send_status(const std::string& text) override {
        Packet packet;
        packet.word = status_word;
        stream_.queue(packet, text);
        write();
    }

    [[nodiscard]] Index bytes() const override { return rows_ ? bytes_of(*rows_) : 0; }
    [[nodiscard]] std::string transport() const override { return lane_ ? "ucx" : "tcp"; }

    [[nodiscard]] Heard hear() override {
        while (true) {
            const Arrival arrival = stream_.receive();
            if (arrival.kind != Arrival::Kind::packet) return {arrival.kind};
            if (arrival.packet.word == status_word) return {arrival.kind, {}, true};
            if (is_word(arrival.packet)) {
                const Message message = message_of(arrival.packet);
                const bool ends = message.word == Word::release ? message.generation >= generation_
                                                                : message.generation > generation_;
                if (ends) end();  // the memory may be used for another version from now on
                return {rows_ ? arrival.kind : Arrival::Kind::strange, message};
            }
            if (arrival.packet.word == landed_word && lane_) {
                lane_->taken();
                continue;
            }
            if (arrival.packet.word == landing_word && puts_ != nullptr && !rows_) {
                auto lane = puts_->lane(std::string(stream_.payload()));
                if (lane) lane_ = std::move(*lane);  // else the rows go through the stream
                continue;
            }
            if (arrival.packet.word != rows_word || rows_) return {Arrival::Kind::strange};
            rows_ = rows_of(stream_.payload(), layout_.tiles);
            if (!rows_) return {Arrival::Kind::strange};
        }
    }

    [[nodiscard]] bool has_to_write() override {
        announce();
        return (walk_ && room() != nullptr && limit_.allows(Clock::now())) || !stream_.is_flushed();
    }

    void write() override {
        for (int chunk = 0; chunk < chunks_at_once; ++chunk) {
            // hear() notices a closed connection.
            announce();
            if (!stream_.flush() || !stream_.is_flushed() || !walk_ || !limit_.allows(Clock::now())) return;
            char* const start = room();
            if (start == nullptr) return;
            char* to = start;
            const Index bytes = walk_->walk(chunk_bytes, [&](const Row& row, Index run, Index place, Index count) {
                const Index from = layout_.offsets[static_cast<std::size_t>(row.array)] + row.source_offset +
                                   run * row.source_stride + place;
                std::memcpy(to, memory_->bytes().data() + from, static_cast<std::size_t>(count));
                to += count;
            });
            limit_.spend(bytes, Clock::now());
            Packet packet;
            packet.word = lane_ ? landed_word : data_word;
            packet.generation = generation_;
            if (lane_) {
                packet.content = static_cast<std::uint64_t>(bytes);
                lane_->put(bytes);
                under_way_.push_back(packet);
            } else {
                stream_.queue(packet, {start, static_cast<std::size_t>(bytes)});
            }
            if (walk_->is_over()) end();
        }
    }

private:
    // Memory for the next chunk. nullptr: all of it is in use.
    char* room() { return lane_ ? lane_->room() : chunk_.data(); }
    // Tells the subscriber which chunks have landed.
    void announce() {
        while (lane_ && lane_->landed()) {
            stream_.queue(under_way_.front());
            under_way_.pop_front();
        }
        if (lane_ && lane_->has_failed()) stream_.end();
    }
    void begin(const Message& message, const std::shared_ptr<Segment>& memory) {
        generation_ = message.generation;
        if (!rows_ || rows_->empty()) return;
        chunk_.resize(chunk_bytes);
        memory_ = memory;
        walk_.emplace(*rows_);
    }
    void end() {
        walk_.reset();
        memory_.reset();
    }

    Stream stream_;
    const VersionMemory& layout_;
    RateLimit& limit_;
    Puts* puts_;
    std::unique_ptr<Lane> lane_;            // or the rows go through the stream
    std::deque<Packet> under_way_;          // says later that the chunks of the lane have landed
    std::optional<std::vector<Row>> rows_;  // what this rank wants of each version
    Index generation_ = 0;                  // of the last grant
    std::optional<RowWalk> walk_;           // while bytes are sent
    std::shared_ptr<Segment> memory_;       // that they are read from
    std::vector<char> chunk_;
};

}  // namespace

std::unique_ptr<Reader> local_reader(Descriptor socket) { return std::make_unique<LocalReader>(std::move(socket)); }

std::unique_ptr<Reader> remote_reader(Stream stream, const VersionMemory& memory, RateLimit& limit, Puts* puts) {
    return std::make_unique<RemoteReader>(std::move(stream), memory, limit, puts);
}

}  // namespace reshard::live
