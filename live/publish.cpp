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

#include "live/own_tiles.hpp"
#include "live/place.hpp"
#include "live/protocol/publisher_state.hpp"
#include "live/read_log.hpp"
#include "live/reader.hpp"
#include "src/base/try.hpp"

namespace reshard::live {
namespace {

constexpr std::chrono::milliseconds lease_min{100};
constexpr Index versions_min = 3;  // the newest one, the one before, and the next

Index milliseconds_now() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now().time_since_epoch()).count();
}

}  // namespace

// The caller's thread stages versions. The thread of the session accepts subscribers, answers them and ends leases.
// Both hold the mutex while they use the state.
class Publisher::Session {
public:
    Session(Group& group, OwnTiles own, std::vector<std::span<const std::byte>> tiles, const PublishOptions& options)
        : group_(group),
          own_(std::move(own)),
          tiles_(std::move(tiles)),
          options_(options),
          state_(options.lease.count()),
          limit_(options.bytes_per_second) {}

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
        if (options_.bytes_per_second < 0)
            return fail(Code::usage, fmt::format("a limit of {} bytes per second; wanted 0 for no limit, or more",
                                                 options_.bytes_per_second));
        if (options_.memory_bytes != 0 && options_.memory_bytes < versions_min * own_.version_bytes())
            return fail(Code::usage,
                        fmt::format("a limit of {} bytes of memory; wanted 0 for no limit, or at least {} "
                                    "for {} versions",
                                    options_.memory_bytes, versions_min * own_.version_bytes(), versions_min));
        RESHARD_CHECK(open_puts(endpoint));
        RESHARD_CHECK(check_tensors(own_.tensors(), group_.size()));
        RESHARD_CHECK(own_.check_casts());
        if (std::ranges::any_of(tiles_, [](const auto& tile) { return !tile.empty(); }))
            RESHARD_CHECK(own_.check(tiles_));
        text_ = text_of(own_.tensors());
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
        const Result<OwnTiles::Digests> staged = stage(version, tiles);
        const auto votes =
            group_.gather(staged ? commit_vote(version, *staged) : "f" + staged.error().message, options_.lease);
        const auto agreed = votes ? add_up(*votes, version, own_.tensors().size()) : tl::unexpected(votes.error());
        const std::lock_guard lock(mutex_);
        if (!staged) return tl::unexpected(staged.error());
        if (!agreed) {
            state_.unstage(version);
            act();
            return tl::unexpected(agreed.error());
        }
        own_.seal(*segments_.at(version), *agreed);
        state_.ready(version, agreed->front());
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
    RankStatus status() const {
        const std::lock_guard lock(mutex_);
        return status_without(0);
    }
    std::string endpoint() const { return endpoints_.substr(0, endpoints_.find('\n')); }

private:
    struct Connected {
        std::unique_ptr<Reader> reader;
        ReadLog log;
    };

    Result<void> open_puts(const std::string& endpoint) {
        if (is_path(endpoint)) return {};
        if (options_.transport == Transport::automatic) devices_ = Devices::rdma;
        if (options_.transport == Transport::ucx) devices_ = Devices::any;
        auto puts = open_ucx(devices_);
        if (puts)
            puts_ = std::move(*puts);
        else if (options_.transport == Transport::ucx)
            return tl::unexpected(puts.error());
        return {};
    }

    // Copies the tiles into a segment that no subscriber knows.
    Result<OwnTiles::Digests> stage(Index version, OwnTiles::Tiles tiles) {
        RESHARD_CHECK(own_.check(tiles));
        std::shared_ptr<Segment> segment;
        {
            const std::lock_guard lock(mutex_);
            RESHARD_CHECK(state_.stage(version));
            if (!spare_.empty()) {
                segment = std::move(spare_.back());
                spare_.pop_back();
            } else if (const Result<void> room = check_room(); !room) {
                state_.unstage(version);
                act();
                return tl::unexpected(room.error());
            }
        }
        auto copied = copy(tiles, segment);
        const std::lock_guard lock(mutex_);
        if (copied)
            segments_[version] = std::move(segment);
        else
            state_.unstage(version);
        act();
        return copied;
    }

    // Fails if no memory may be taken for another version.
    Result<void> check_room() const {
        const Index bytes = saturating_multiply(own_.version_bytes(), std::ssize(segments_) + 1);
        if (options_.memory_bytes == 0 || bytes <= options_.memory_bytes) return {};
        return fail(
            Code::backend,
            fmt::format("another version needs {} bytes beside {} that are kept, from {} on; the "
                        "limit is {} bytes for all",
                        own_.version_bytes(), segments_.size(), segments_.begin()->first, options_.memory_bytes));
    }

    Result<OwnTiles::Digests> copy(OwnTiles::Tiles tiles, std::shared_ptr<Segment>& segment) const {
        if (!segment) {
            RESHARD_TRY(Segment & made, own_.make());
            segment = std::make_shared<Segment>(std::move(made));
        }
        return own_.copy(tiles, *segment, options_.check_bytes);
    }

    // --- the thread
    void serve() {
        while (!stop_) {
            std::vector<pollfd> all{{place_->listener.number(), POLLIN, 0}, {waker_.number(), POLLIN, 0}};
            std::vector<std::size_t> numbers;
            int wait = 1000;
            {
                const std::lock_guard lock(mutex_);
                if (puts_ && !puts_->work()) wait = 0;  // chunks may have landed, which is said next
                for (const auto& [number, one] : readers_) {
                    const int events = one.reader->has_to_write() ? POLLIN | POLLOUT : POLLIN;
                    all.push_back({one.reader->number(), static_cast<short>(events), 0});
                    numbers.push_back(number);
                }
                wait = static_cast<int>(std::clamp<Index>(state_.next_tick() - milliseconds_now(), 0, wait));
                if (!limit_.allows(Clock::now())) wait = std::min(wait, milliseconds_until(limit_.next()));
                if (puts_) all.push_back({puts_->number(), POLLIN, 0});
            }
            poll(all.data(), all.size(), wait);
            std::uint64_t count = 0;
            while (read(waker_.number(), &count, sizeof count) > 0) continue;
            const std::lock_guard lock(mutex_);
            const Index now = milliseconds_now();
            state_.tick(now);
            for (std::size_t i = 0; i < numbers.size(); ++i) {
                if ((all[i + 2].revents & POLLOUT) != 0) readers_.at(numbers[i]).reader->write();
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
        packet.devices = static_cast<std::uint16_t>(puts_ ? devices_ : Devices::none);
        std::unique_ptr<Reader> reader;
        const std::string peer = peer_of(made.number());
        if (is_local_) {
            packet.bytes = std::ssize(text_);
            if (!send_packet(made, packet, description_->number())) return;
            reader = local_reader(std::move(made));
        } else {
            Stream stream(std::move(made));
            stream.queue(packet, endpoints_ + "\n" + text_);
            reader = remote_reader(std::move(stream), own_.memory(), limit_, puts_.get());
        }
        readers_.emplace(++last_reader_, Connected{std::move(reader), ReadLog(peer)});
        state_.join(last_reader_, now);
    }

    void hear(std::size_t number, Index now) {
        while (true) {
            Connected& one = readers_.at(number);
            const Reader::Heard heard = one.reader->hear();
            if (heard.kind == Arrival::Kind::nothing) return;
            if (heard.asks_status) {
                one.reader->send_status(text_of(status_without(number)));
                continue;
            }
            if (heard.kind == Arrival::Kind::packet) {
                one.log.said(heard.message, Clock::now());
                state_.receive(number, heard.message, now);
                continue;
            }
            gone_reads_ += one.log.ended();
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
                if (grants) reader->second.log.granted(send->message, Clock::now());
                reader->second.reader->send(send->message, grants ? segments_.at(send->message.version) : nullptr);
            }
        }
    }

    // The process that asks for the status is no reader.
    RankStatus status_without(std::size_t asks) const {
        RankStatus status;
        status.newest = state_.newest();
        status.tile_bytes = own_.bytes();
        status.reads = gone_reads_;
        for (const Index version : state_.kept())
            status.versions.push_back({version, std::string(name(state_.state_of(version)))});
        for (const auto& [number, one] : readers_) {
            status.reads += one.log.ended();
            if (number != asks) status.readers.push_back(one.log.status(one.reader->bytes(), one.reader->transport()));
        }
        return status;
    }

    void wake() const {
        const std::uint64_t one = 1;
        [[maybe_unused]] const auto written = write(waker_.number(), &one, sizeof one);
    }

    Group& group_;
    const OwnTiles own_;
    const std::vector<std::span<const std::byte>> tiles_;
    const PublishOptions options_;
    std::optional<Segment> description_;
    std::string text_;       // of the tensors
    std::string endpoints_;  // of all ranks, one a line
    bool is_local_ = true;   // subscribers are on this machine
    std::optional<Place> place_;
    Descriptor waker_;
    mutable std::mutex mutex_;
    PublisherState state_;
    RateLimit limit_;
    Devices devices_ = Devices::none;
    std::unique_ptr<Puts> puts_;                          // null: rows go over TCP
    std::map<Index, std::shared_ptr<Segment>> segments_;  // of the kept versions
    std::vector<std::shared_ptr<Segment>> spare_;
    std::map<std::size_t, Connected> readers_;
    Index gone_reads_ = 0;  // of readers that have left
    std::size_t last_reader_ = 0;
    std::atomic<bool> stop_ = false;
    std::thread thread_;
};

std::optional<Transport> transport_of(std::string_view text) {
    if (text == "auto") return Transport::automatic;
    if (text == "tcp") return Transport::tcp;
    return text == "ucx" ? std::optional(Transport::ucx) : std::nullopt;
}

Publisher::Publisher(std::unique_ptr<Session> session) : session_(std::move(session)) {}
Publisher::Publisher(Publisher&&) noexcept = default;
Publisher& Publisher::operator=(Publisher&&) noexcept = default;
Publisher::~Publisher() = default;

Result<Publisher> Publisher::open(Group& group, const std::string& endpoint, std::span<const PublishedTensor> tensors,
                                  const PublishOptions& options) {
    std::vector<NamedTensor> named;
    std::vector<DType> held;
    std::vector<std::span<const std::byte>> tiles;
    for (const PublishedTensor& tensor : tensors) {
        named.push_back({tensor.name, tensor.layout});
        held.push_back(tensor.held.value_or(tensor.layout.dtype));
        tiles.push_back(tensor.tile);
    }
    OwnTiles own(std::move(named), std::move(held), group.rank(), group.size());
    auto session = std::make_unique<Session>(group, std::move(own), std::move(tiles), options);
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
RankStatus Publisher::status() const { return session_->status(); }

}  // namespace reshard::live
