#include "reshard/live/publish.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>

#include "live/protocol/publisher_state.hpp"
#include "live/reader.hpp"
#include "src/base/try.hpp"

namespace reshard::live {
namespace {

constexpr std::chrono::milliseconds lease_min{100};

Index milliseconds_now() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now().time_since_epoch()).count();
}

// Where a rank listens, and how subscribers reach it. At a path, each rank has a socket of its own. At `host:port` only
// rank 0 has that port. The others take a free one of the same host, or of their own if they are elsewhere.
struct Place {
    Listener listener;
    std::string endpoint;
};

bool is_path(const std::string& endpoint) { return endpoint.find('/') != std::string::npos; }

Result<Place> listen_at(const std::string& endpoint, Index rank) {
    if (is_path(endpoint)) {
        RESHARD_TRY(Listener & listener, Listener::open(fmt::format("{}.{}", endpoint, rank), Kind::packets));
        return Place{std::move(listener), endpoint};
    }
    const std::string host = endpoint.substr(0, endpoint.rfind(':'));
    if (rank == 0 || host != "0.0.0.0") {
        auto listener = Listener::open(rank == 0 ? endpoint : host + ":0", Kind::stream);
        if (!listener && rank == 0) return tl::unexpected(listener.error());
        if (listener) {
            std::string reached = fmt::format("{}:{}", host == "0.0.0.0" ? host_name() : host, listener->port());
            return Place{std::move(*listener), std::move(reached)};
        }
    }
    RESHARD_TRY(Listener & listener, Listener::open("0.0.0.0:0", Kind::stream));
    const int port = listener.port();
    return Place{std::move(listener), fmt::format("{}:{}", host_name(), port)};
}

}  // namespace

// The caller's thread stages versions. The thread of the session accepts subscribers, answers them and ends leases.
// Both hold the mutex while they use the state.
class Publisher::Session {
public:
    Session(Group& group, std::vector<NamedTensor> tensors, std::vector<std::span<const std::byte>> tiles,
            const PublishOptions& options)
        : group_(group),
          tensors_(std::move(tensors)),
          tiles_(std::move(tiles)),
          options_(options),
          offsets_(tile_offsets(tensors_, group.rank())),
          state_(options.lease.count()) {
        layout_.offsets = offsets_;
        for (const NamedTensor& tensor : tensors_) layout_.tiles.push_back(tile_bytes_of(tensor.layout, group.rank()));
    }

    ~Session() {
        if (!thread_.joinable()) return;
        stop_ = true;
        wake();
        thread_.join();
    }

    // Everything that can fail before the ranks agree to open.
    Result<void> prepare(const std::string& endpoint) {
        if (options_.lease < lease_min)
            return fail(Code::usage, fmt::format("a lease of {} ms; wanted at least {} ms", options_.lease.count(),
                                                 lease_min.count()));
        RESHARD_CHECK(check_tensors(tensors_, group_.size()));
        if (std::ranges::any_of(tiles_, [](const auto& tile) { return !tile.empty(); })) RESHARD_CHECK(check(tiles_));
        text_ = text_of(tensors_);
        RESHARD_TRY(Segment & description, Segment::make(std::ssize(text_)));
        std::memcpy(description.bytes().data(), text_.data(), text_.size());
        description_.emplace(std::move(description));
        RESHARD_TRY(Place & place, listen_at(endpoint, group_.rank()));
        place_.emplace(std::move(place));
        waker_ = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
        if (!waker_.is_open()) return cannot("make an event");
        return {};
    }

    Result<void> open(const std::string& endpoint) {
        const Result<void> ready = prepare(endpoint);
        const std::string said = fmt::format("y{} ", digest_of(text_));
        const std::string mine = ready ? said + place_->endpoint : "f" + ready.error().message;
        RESHARD_TRY(const auto& votes, group_.gather(mine, options_.lease));
        if (!ready) return ready;
        for (std::size_t rank = 0; rank < votes.size(); ++rank) {
            if (votes[rank].starts_with('f'))
                return fail(Code::backend, fmt::format("rank {} of the publisher: {}", rank, votes[rank].substr(1)));
            if (!votes[rank].starts_with(said))
                return fail(Code::mismatch,
                            fmt::format("ranks {} and {} of the publisher name different tensors or layouts",
                                        group_.rank(), rank));
            endpoints_ += votes[rank].substr(said.size()) + "\n";
        }
        is_local_ = is_path(endpoint);
        thread_ = std::thread([this] { serve(); });
        return {};
    }

    Result<void> commit(Index version) { return commit(version, tiles_); }

    Result<void> commit(Index version, std::span<const std::span<const std::byte>> tiles) {
        std::vector<std::uint64_t> digests(tensors_.size());
        const Result<void> staged = stage(version, tiles, digests);
        std::string mine(staged ? "y" : "f" + staged.error().message);
        if (staged) {
            mine.append(reinterpret_cast<const char*>(&version), sizeof version);
            mine.append(reinterpret_cast<const char*>(digests.data()), digests.size() * sizeof(std::uint64_t));
        }
        const auto votes = group_.gather(mine, options_.lease);
        const Result<void> agreed = votes ? add_up(*votes, version, digests) : tl::unexpected(votes.error());
        const std::lock_guard lock(mutex_);
        if (!staged) return staged;
        if (!agreed) {
            state_.unstage(version);
            act();
            return agreed;
        }
        const auto end = segments_.at(version)->bytes().subspan(static_cast<std::size_t>(offsets_.back()));
        std::memcpy(end.data(), digests.data(), digests.size() * sizeof(std::uint64_t));
        state_.ready(version, digests[0]);
        act();
        wake();
        return {};
    }

    Index newest() const {
        const std::lock_guard lock(mutex_);
        return state_.newest();
    }
    std::size_t subscriber_count() const {
        const std::lock_guard lock(mutex_);
        return readers_.size();
    }
    std::string endpoint() const { return endpoints_.substr(0, endpoints_.find('\n')); }

private:
    Result<void> check(std::span<const std::span<const std::byte>> tiles) const {
        if (tiles.size() != tensors_.size())
            return fail(Code::mismatch,
                        fmt::format("{} tiles; wanted {}, one for each tensor", tiles.size(), tensors_.size()));
        for (std::size_t i = 0; i < tensors_.size(); ++i) {
            const Index wanted = tile_bytes_of(tensors_[i].layout, group_.rank());
            if (std::ssize(tiles[i]) != wanted)
                return fail(Code::mismatch, fmt::format("the tile of tensor {} has {} bytes; rank {} holds {}",
                                                        tensors_[i].name, tiles[i].size(), group_.rank(), wanted));
        }
        return {};
    }

    // Copies the tiles into a segment that no subscriber knows. The digests of the version stand behind the tiles.
    Result<void> stage(Index version, std::span<const std::span<const std::byte>> tiles,
                       std::vector<std::uint64_t>& digests) {
        RESHARD_CHECK(check(tiles));
        std::shared_ptr<Segment> segment;
        {
            const std::lock_guard lock(mutex_);
            RESHARD_CHECK(state_.stage(version));
            if (!spare_.empty()) {
                segment = std::move(spare_.back());
                spare_.pop_back();
            }
        }
        Result<void> copied = segment ? Result<void>() : make(segment);
        for (std::size_t i = 0; copied && i < tensors_.size(); ++i) {
            std::ranges::copy(tiles[i], segment->bytes().data() + offsets_[i]);
            if (!options_.check_bytes) continue;
            auto part = digest_part(keys_, tensors_[i].layout, group_.rank(), tiles[i], static_cast<Index>(i));
            if (part) digests[i] = *part;
            if (!part) copied = tl::unexpected(part.error());
        }
        const std::lock_guard lock(mutex_);
        if (copied)
            segments_[version] = std::move(segment);
        else
            state_.unstage(version);
        act();
        return copied;
    }

    Result<void> make(std::shared_ptr<Segment>& segment) const {
        const Index digest_bytes = std::ssize(tensors_) * static_cast<Index>(sizeof(std::uint64_t));
        RESHARD_TRY(Segment & made, Segment::make(offsets_.back() + digest_bytes));
        segment = std::make_shared<Segment>(std::move(made));
        return {};
    }

    // The digests of the whole version, from the parts of all ranks.
    static Result<void> add_up(const std::vector<std::string>& votes, Index version,
                               std::vector<std::uint64_t>& digests) {
        std::ranges::fill(digests, 0);
        for (std::size_t rank = 0; rank < votes.size(); ++rank) {
            std::string_view vote = votes[rank];
            if (vote.starts_with('f'))
                return fail(Code::backend, fmt::format("rank {} of the publisher: {}", rank, vote.substr(1)));
            Index theirs = 0;
            if (vote.size() != 1 + sizeof theirs + digests.size() * sizeof(std::uint64_t))
                return fail(Code::mismatch, fmt::format("rank {} of the publisher is in another call", rank));
            std::memcpy(&theirs, vote.data() + 1, sizeof theirs);
            if (theirs != version)
                return fail(Code::usage, fmt::format("rank {} of the publisher commits version {}; this rank {}", rank,
                                                     theirs, version));
            vote.remove_prefix(1 + sizeof theirs);
            for (std::size_t i = 0; i < digests.size(); ++i) {
                std::uint64_t part = 0;
                std::memcpy(&part, vote.data() + i * sizeof part, sizeof part);
                digests[i] = added(digests[i], part);
            }
        }
        return {};
    }

    // --- the thread
    void serve() {
        while (!stop_) {
            std::vector<pollfd> all{{place_->listener.number(), POLLIN, 0}, {waker_.number(), POLLIN, 0}};
            std::vector<std::size_t> numbers;
            int wait = 1000;
            {
                const std::lock_guard lock(mutex_);
                for (const auto& [number, reader] : readers_) {
                    const int events = reader->has_to_write() ? POLLIN | POLLOUT : POLLIN;
                    all.push_back({reader->number(), static_cast<short>(events), 0});
                    numbers.push_back(number);
                }
                wait = static_cast<int>(std::clamp<Index>(state_.next_tick() - milliseconds_now(), 0, wait));
            }
            poll(all.data(), all.size(), wait);
            std::uint64_t count = 0;
            while (read(waker_.number(), &count, sizeof count) > 0) continue;
            const std::lock_guard lock(mutex_);
            const Index now = milliseconds_now();
            state_.tick(now);
            for (std::size_t i = 0; i < numbers.size(); ++i) {
                if ((all[i + 2].revents & POLLOUT) != 0) readers_.at(numbers[i])->write();
                if ((all[i + 2].revents & ~POLLOUT) != 0) hear(numbers[i], now);
            }
            while (true) {
                Descriptor made = place_->listener.accept();
                if (!made.is_open()) break;
                welcome(std::move(made), now);
            }
            act();
        }
    }

    void welcome(Descriptor made, Index now) {
        Packet packet;
        packet.word = hello;
        packet.rank = static_cast<std::uint32_t>(group_.rank());
        packet.ranks = static_cast<std::uint32_t>(group_.size());
        packet.checks_bytes = options_.check_bytes ? 1 : 0;
        std::unique_ptr<Reader> reader;
        if (is_local_) {
            packet.bytes = std::ssize(text_);
            if (!send_packet(made, packet, description_->number())) return;
            reader = local_reader(std::move(made));
        } else {
            Stream stream(std::move(made));
            stream.queue(packet, endpoints_ + "\n" + text_);
            reader = remote_reader(std::move(stream), layout_);
        }
        readers_.emplace(++last_reader_, std::move(reader));
        state_.join(last_reader_, now);
    }

    void hear(std::size_t number, Index now) {
        while (true) {
            const Reader::Heard heard = readers_.at(number)->hear();
            if (heard.kind == Arrival::Kind::nothing) return;
            if (heard.kind == Arrival::Kind::packet) {
                state_.receive(number, heard.message, now);
                continue;
            }
            state_.leave(number);  // closed, or it speaks another language
            readers_.erase(number);
            return;
        }
    }

    void act() {
        for (const Action& action : state_.take()) {
            if (const auto* drop = std::get_if<Drop>(&action)) {
                const auto found = segments_.find(drop->version);
                if (found == segments_.end()) continue;  // its copy failed
                if (drop->reusable && spare_.empty() && found->second.use_count() == 1) spare_.push_back(found->second);
                segments_.erase(found);
            }
            if (const auto* send = std::get_if<Send>(&action)) {
                const auto reader = readers_.find(send->peer);
                if (reader == readers_.end()) continue;
                const bool grants = send->message.word == Word::granted;
                reader->second->send(send->message, grants ? segments_.at(send->message.version) : nullptr);
            }
        }
    }

    void wake() const {
        const std::uint64_t one = 1;
        [[maybe_unused]] const auto written = write(waker_.number(), &one, sizeof one);
    }

    Group& group_;
    const std::vector<NamedTensor> tensors_;
    const std::vector<std::span<const std::byte>> tiles_;
    const PublishOptions options_;
    const std::vector<Index> offsets_;
    const DigestKeys keys_;
    std::optional<Segment> description_;
    std::string text_;       // of the tensors
    std::string endpoints_;  // of all ranks, one a line
    bool is_local_ = true;   // subscribers are on this machine
    VersionMemory layout_;
    std::optional<Place> place_;
    Descriptor waker_;
    mutable std::mutex mutex_;
    PublisherState state_;
    std::map<Index, std::shared_ptr<Segment>> segments_;  // of the kept versions
    std::vector<std::shared_ptr<Segment>> spare_;
    std::map<std::size_t, std::unique_ptr<Reader>> readers_;
    std::size_t last_reader_ = 0;
    std::atomic<bool> stop_ = false;
    std::thread thread_;
};

Publisher::Publisher(std::unique_ptr<Session> session) : session_(std::move(session)) {}
Publisher::Publisher(Publisher&&) noexcept = default;
Publisher& Publisher::operator=(Publisher&&) noexcept = default;
Publisher::~Publisher() = default;

Result<Publisher> Publisher::open(Group& group, const std::string& endpoint, std::span<const PublishedTensor> tensors,
                                  const PublishOptions& options) {
    std::vector<NamedTensor> named;
    std::vector<std::span<const std::byte>> tiles;
    for (const PublishedTensor& tensor : tensors) {
        named.push_back({tensor.name, tensor.layout});
        tiles.push_back(tensor.tile);
    }
    auto session = std::make_unique<Session>(group, std::move(named), std::move(tiles), options);
    RESHARD_CHECK(session->open(endpoint));
    return Publisher(std::move(session));
}

Result<void> Publisher::commit(Index version) { return session_->commit(version); }
Result<void> Publisher::commit(Index version, std::span<const std::span<const std::byte>> tiles) {
    return session_->commit(version, tiles);
}
Index Publisher::newest() const { return session_->newest(); }
std::string Publisher::endpoint() const { return session_->endpoint(); }
std::size_t Publisher::subscriber_count() const { return session_->subscriber_count(); }

}  // namespace reshard::live
