#include "reshard/live/group.hpp"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <utility>

#include "live/transport/socket.hpp"
#include "src/base/interrupt.hpp"
#include "src/base/try.hpp"

namespace reshard::live {
namespace {

class Alone : public Group {
public:
    [[nodiscard]] Index rank() const override { return 0; }
    [[nodiscard]] Index size() const override { return 1; }
    [[nodiscard]] Result<std::vector<std::string>> gather(std::string mine, std::chrono::milliseconds) override {
        return std::vector<std::string>{std::move(mine)};
    }
};

std::string joined(const std::vector<std::string>& parts) {
    std::string whole(1, 'v');
    for (const std::string& part : parts) {
        const std::uint64_t length = part.size();
        whole.append(reinterpret_cast<const char*>(&length), sizeof length);
        whole += part;
    }
    return whole;
}

std::optional<std::vector<std::string>> parts_of(std::string_view whole) {
    std::vector<std::string> parts;
    while (!whole.empty()) {
        std::uint64_t length = 0;
        if (whole.size() < sizeof length) return std::nullopt;
        std::memcpy(&length, whole.data(), sizeof length);
        whole.remove_prefix(sizeof length);
        if (whole.size() < length) return std::nullopt;
        parts.emplace_back(whole.substr(0, length));
        whole.remove_prefix(length);
    }
    return parts;
}

// Rank 0 collects and answers. It alone decides that a gather succeeds, so all that succeed return the same. An answer
// is `v` and the parts, or `e` and the error that ends the group.
class Star : public Group {
public:
    Star(Index rank, Index size, std::map<Index, Descriptor> peers)
        : rank_(rank), size_(size), peers_(std::move(peers)) {}

    [[nodiscard]] Index rank() const override { return rank_; }
    [[nodiscard]] Index size() const override { return size_; }

    [[nodiscard]] Result<std::vector<std::string>> gather(std::string mine, std::chrono::milliseconds limit) override {
        if (broken_) return tl::unexpected(*broken_);
        return rank_ == 0 ? collect(std::move(mine), limit) : ask(mine, limit);
    }

    // Between gathers nothing is sent but the end of the group, so readable means lost. A rank that is early in a
    // gather has sent its part to rank 0, which looks at closed connections only.
    [[nodiscard]] Result<void> check() override {
        if (broken_) return tl::unexpected(*broken_);
        for (auto& [rank, peer] : peers_) {
            const int number = peer.number();
            if (!wait_readable({&number, 1}, Clock::now())) continue;
            if (rank_ != 0) {
                auto answer = receive_frame(peer, Clock::now() + std::chrono::seconds(1));
                return end(answer && answer->starts_with('e') ? answer->substr(1)
                                                              : lost(0, "its connection is closed"));
            }
            if (is_closed(peer)) return end(lost(rank, "its connection is closed"));
        }
        return {};
    }

private:
    [[nodiscard]] static std::string lost(Index rank, const std::string& why) {
        return fmt::format("rank {} of this job is lost: {}", rank, why);
    }

    [[nodiscard]] tl::unexpected<Error> end(std::string why) {
        broken_ = Error{Code::backend, std::move(why), {}, 0};
        if (rank_ == 0)
            for (auto& [rank, peer] : peers_)
                static_cast<void>(send_frame(peer, "e" + broken_->message, Clock::now() + std::chrono::seconds(1)));
        peers_.clear();
        return tl::unexpected(*broken_);
    }

    [[nodiscard]] Result<std::vector<std::string>> collect(std::string mine, std::chrono::milliseconds limit) {
        const auto until = Clock::now() + limit;
        std::vector<std::string> parts(static_cast<std::size_t>(size_));
        parts[0] = std::move(mine);
        std::map<Index, int> missing;
        for (const auto& [rank, peer] : peers_) missing[rank] = peer.number();
        while (!missing.empty()) {
            std::vector<int> numbers;
            for (const auto& [rank, number] : missing) numbers.push_back(number);
            if (!wait_readable(numbers, until))
                return end(Interrupt::raised() ? "rank 0 of this job was interrupted"
                                               : lost(missing.begin()->first,
                                                      fmt::format("it has not voted for {} ms", limit.count())));
            for (auto it = missing.begin(); it != missing.end();) {
                if (!wait_readable({&it->second, 1}, Clock::now())) {
                    ++it;
                    continue;
                }
                auto part = receive_frame(peers_.at(it->first), until);
                if (!part) return end(lost(it->first, part.error().message));
                parts[static_cast<std::size_t>(it->first)] = std::move(*part);
                it = missing.erase(it);
            }
        }
        // A peer that cannot be reached is lost at the next gather. The others have the result.
        const std::string answer = joined(parts);
        for (auto& [rank, peer] : peers_) static_cast<void>(send_frame(peer, answer, until + std::chrono::seconds(1)));
        return parts;
    }

    [[nodiscard]] Result<std::vector<std::string>> ask(const std::string& mine, std::chrono::milliseconds limit) {
        // Rank 0 speaks first if a rank is missing, so wait a little longer than it does.
        const auto until = Clock::now() + limit + limit / 2 + std::chrono::seconds(1);
        const Descriptor& root = peers_.begin()->second;
        if (auto sent = send_frame(root, mine, until); !sent) {
            auto answer = receive_frame(root, Clock::now() + std::chrono::milliseconds(100));
            return end(answer && answer->starts_with('e') ? answer->substr(1) : lost(0, sent.error().message));
        }
        auto answer = receive_frame(root, until);
        if (!answer) return end(lost(0, answer.error().message));
        if (answer->starts_with('e')) return end(answer->substr(1));
        auto parts = parts_of(std::string_view(*answer).substr(1));
        if (!parts || std::ssize(*parts) != size_) return end(lost(0, "it speaks another protocol"));
        return std::move(*parts);
    }

    Index rank_;
    Index size_;
    std::map<Index, Descriptor> peers_;  // at rank 0: all others, by rank; else rank 0
    std::optional<Error> broken_;
};

// The first words of a rank to rank 0. A process without the token of the group is a stranger.
std::string greeting(Index rank, Index size, const std::string& token) {
    std::string mine(reinterpret_cast<const char*>(&rank), sizeof rank);
    mine.append(reinterpret_cast<const char*>(&size), sizeof size);
    return mine + token;
}

// The ranks of a group, as they come. A process that connects and says nothing delays nobody.
class Guests {
public:
    Guests(Index size, const std::string& token) : size_(size), token_(token) {}

    Result<std::map<Index, Descriptor>> gather(const Listener& listener, const std::string& endpoint,
                                               Clock::time_point until) {
        while (std::ssize(known_) < size_ - 1) {
            std::vector<int> numbers{listener.number()};
            for (const Descriptor& one : silent_) numbers.push_back(one.number());
            if (!wait_readable(numbers, until))
                return fail(Code::backend,
                            fmt::format("{} of {} ranks have joined at {}", known_.size() + 1, size_, endpoint));
            if (Descriptor made = listener.accept(); made.is_open()) silent_.push_back(std::move(made));
            for (auto it = silent_.begin(); it != silent_.end();) {
                const int number = it->number();
                if (!wait_readable({&number, 1}, Clock::now())) {
                    ++it;
                    continue;
                }
                Descriptor peer = std::move(*it);
                it = silent_.erase(it);
                RESHARD_CHECK(greet(std::move(peer), until));
            }
        }
        return std::move(known_);
    }

private:
    Result<void> greet(Descriptor peer, Clock::time_point until) {
        const auto said = receive_frame(peer, std::min(until, Clock::now() + std::chrono::seconds(2)));
        if (!said || !said->ends_with(token_)) return {};  // a stranger, or a process that has died
        Index rank = 0;
        Index ranks = 0;
        if (said->size() == sizeof rank + sizeof ranks + token_.size()) {
            std::memcpy(&rank, said->data(), sizeof rank);
            std::memcpy(&ranks, said->data() + sizeof rank, sizeof ranks);
        }
        if (rank < 1 || rank >= size_ || ranks != size_ || known_.contains(rank))
            return fail(Code::usage,
                        fmt::format("rank {} of {} has joined twice, or is not of a group of {}", rank, ranks, size_));
        known_.emplace(rank, std::move(peer));
        return {};
    }

    Index size_;
    const std::string& token_;
    std::map<Index, Descriptor> known_;
    std::vector<Descriptor> silent_;
};

Result<void> check_rank(Index rank, Index size) {
    if (size >= 1 && rank >= 0 && rank < size) return {};
    return fail(Code::usage,
                fmt::format("rank {} of a group of {}; wanted a rank from 0 on, below the size", rank, size));
}

Result<std::map<Index, Descriptor>> connect_to_root(const std::string& endpoint, Index rank, Index size,
                                                    const std::string& token, Clock::time_point until) {
    RESHARD_TRY(auto& root, connect_to(endpoint, Kind::stream, until));
    RESHARD_CHECK(send_frame(root, greeting(rank, size, token), until));
    std::map<Index, Descriptor> peers;
    peers.emplace(0, std::move(root));
    return peers;
}

Result<std::unique_ptr<Group>> star_of(Index rank, Index size, std::map<Index, Descriptor> peers,
                                       std::chrono::milliseconds limit) {
    auto star = std::make_unique<Star>(rank, size, std::move(peers));
    RESHARD_CHECK(star->gather({}, limit));  // all have come
    return star;
}

}  // namespace

std::unique_ptr<Group> alone() { return std::make_unique<Alone>(); }

Result<std::unique_ptr<Group>> join_group(const std::string& endpoint, Index rank, Index size,
                                          std::chrono::milliseconds limit) {
    RESHARD_CHECK(check_rank(rank, size));
    const auto until = Clock::now() + limit;
    std::map<Index, Descriptor> peers;
    if (rank == 0) {
        RESHARD_TRY(const Listener& listener, Listener::open(endpoint, Kind::stream));
        const std::string token;
        RESHARD_ASSIGN(peers, Guests(size, token).gather(listener, endpoint, until));
    } else {
        RESHARD_ASSIGN(peers, connect_to_root(endpoint, rank, size, {}, until));
    }
    return star_of(rank, size, std::move(peers), limit);
}

Result<std::unique_ptr<Group>> join_group(const std::function<Result<std::string>(std::string)>& broadcast, Index rank,
                                          Index size, std::chrono::milliseconds limit) {
    RESHARD_CHECK(check_rank(rank, size));
    const auto until = Clock::now() + limit;
    std::map<Index, Descriptor> peers;
    if (rank == 0) {
        const auto listener = Listener::open("0.0.0.0:0", Kind::stream);
        const std::string token = fmt::format("{:08x}{:08x}", std::random_device()(), std::random_device()());
        const std::string endpoint = listener ? fmt::format("{}:{}", host_name(), listener->port()) : std::string();
        RESHARD_CHECK(broadcast(listener ? endpoint + " " + token : std::string()));
        if (!listener) return tl::unexpected(listener.error());
        RESHARD_ASSIGN(peers, Guests(size, token).gather(*listener, endpoint, until));
    } else {
        RESHARD_TRY(const std::string& text, broadcast({}));
        const auto blank = text.find(' ');
        if (blank == std::string::npos) return fail(Code::backend, "rank 0 of this job cannot listen at a port");
        RESHARD_ASSIGN(peers, connect_to_root(text.substr(0, blank), rank, size, text.substr(blank + 1), until));
    }
    return star_of(rank, size, std::move(peers), limit);
}

Result<void> report_failure(Group& group, const std::string& reason, std::chrono::milliseconds limit) {
    RESHARD_CHECK(group.gather("f" + reason, limit));
    return {};
}

}  // namespace reshard::live
