#include "reshard/live/subscribe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "live/protocol/subscriber_state.hpp"
#include "live/protocol/vote_bytes.hpp"
#include "live/source.hpp"
#include "live/wanted_tiles.hpp"
#include "src/base/interrupt.hpp"
#include "src/base/try.hpp"

namespace reshard::live {
namespace {

using Milliseconds = std::chrono::milliseconds;
constexpr Milliseconds look_interval{50};         // between two looks at the ranks of this job
constexpr Index copied_at_once = Index{8} << 20;  // bytes

Index milliseconds_now() { return std::chrono::duration_cast<Milliseconds>(Clock::now().time_since_epoch()).count(); }

// The ranks of this job compare these words: `w` is an array of the publisher, and `qkv<-q+k+v` is made of its parts.
std::string word_of(const WantedTensor& wanted) {
    std::string word = wanted.name;
    for (const WantedPart& part : wanted.parts) word += (&part == wanted.parts.data() ? "<-" : "+") + part.name;
    return word;
}

}  // namespace

// Runs in the caller's thread: it carries out what the state machine asks, and tells it what comes.
class Subscriber::Session {
public:
    Session(std::string endpoint, std::span<const WantedTensor> wanted, const SubscribeOptions& options)
        : endpoint_(std::move(endpoint)), wanted_(wanted.begin(), wanted.end()), options_(options) {
        for (const WantedTensor& one : wanted) tensors_.push_back({word_of(one), one.layout});
    }

    Result<void> connect(Group& group) {
        const Result<void> ready = prepare(group);
        RESHARD_TRY(const auto& votes,
                    group.gather(ready ? "y" : "f" + ready.error().message, options_.connect_limit + options_.lease));
        if (!ready) return ready;
        for (std::size_t rank = 0; rank < votes.size(); ++rank)
            if (votes[rank] != "y")
                return fail(Code::backend, fmt::format("rank {} of the subscriber: {}", rank, votes[rank].substr(1)));
        const Standing before = state_ ? state_->standing() : Standing{};
        group_ = &group;
        state_.emplace(source_->rank_count(), options_.lease.count(), before, options_.in_place);
        state_->join(digest_of(text_of(tensors_) + (options_.in_place ? " in place" : "")), milliseconds_now());
        RESHARD_CHECK(drive(Clock::now() + options_.connect_limit));
        return {};
    }

    Result<Index> update(Milliseconds limit) {
        RESHARD_TRY(const Index version, run(true, Clock::now() + limit));
        if (version == 0)
            return fail(Code::backend,
                        fmt::format("no newer version than {} within {} ms", state_->standing().active, limit.count()));
        return version;
    }

    Result<std::optional<Index>> poll() {
        RESHARD_TRY(const Index version, run(false, Clock::now()));
        return version == 0 ? std::nullopt : std::optional(version);
    }

    Index version() const { return state_->serving(); }
    void close() { source_.reset(); }

    Result<std::span<const std::byte>> tile(std::size_t tensor) const {
        if (tensor >= tensors_.size())
            return fail(Code::usage, fmt::format("tensor {} of {}; they count from 0", tensor, tensors_.size()));
        if (state_->standing().doubt != 0)
            return fail(Code::backend, fmt::format("the result of the vote on version {} is unknown here; reconnect",
                                                   state_->standing().doubt));
        if (version() == 0 && options_.in_place && state_->standing().floor > 0)
            return fail(Code::backend, "the memory has parts of several versions; update() takes a whole version");
        if (version() == 0) return fail(Code::usage, "no version yet; update() takes one");
        return tiles_.shown(tensor);
    }

private:
    Result<void> prepare(const Group& group) {
        if (state_ && group.size() != ranks_)
            return fail(Code::usage,
                        fmt::format("the new group has {} ranks, the one before had {}", group.size(), ranks_));
        if (state_ && group.rank() != rank_)
            return fail(Code::usage, fmt::format("this process is rank {} of the new group, and was rank {} of the one "
                                                 "before; its tiles are of that rank",
                                                 group.rank(), rank_));
        ranks_ = group.size();
        rank_ = group.rank();
        RESHARD_CHECK(check_tensors(tensors_, ranks_));
        source_.reset();
        generation_ = 0;
        RESHARD_TRY(Source & source,
                    Source::connect(endpoint_, wanted_, group, options_.lease, Clock::now() + options_.connect_limit));
        source_.emplace(std::move(source));
        tiles_.make_room(tensors_, source_->sent_dtypes(), rank_, options_.in_place);
        return {};
    }

    Result<Index> run(bool patient, Clock::time_point end) {
        if (!source_) return fail(Code::backend, "the subscriber is not connected; reconnect it first");
        hear();
        state_->start(patient, milliseconds_now());
        return drive(end);
    }

    // Runs until the state machine has finished. After `end` it waits for no newer version.
    Result<Index> drive(Clock::time_point end) {
        while (true) {
            take_whole();
            bool acted = false;
            std::optional<Finished> finished;
            for (const Action& action : state_->take()) {
                acted = true;
                if (const auto* one = std::get_if<Finished>(&action))
                    finished = *one;
                else
                    carry_out(action);
            }
            if (finished && !finished->reason.empty()) return fail(Code::backend, finished->reason);
            if (finished) return finished->version;
            if (acted) continue;
            if (Interrupt::raised()) {
                state_->gather_failed(Interrupt::words);
                continue;
            }
            if (Clock::now() >= end) state_->give_up();
            if (const auto there = group_->check(); !there) state_->gather_failed(there.error().message);
            wait(end);
            hear();
            state_->tick(milliseconds_now());
        }
    }

    void wait(Clock::time_point end) const {
        const Index next = state_->next_tick(milliseconds_now()) - milliseconds_now();
        const auto tick = Clock::now() + std::min(look_interval, Milliseconds(std::clamp<Index>(next, 0, 1000)));
        source_->wait(std::min(end, tick));
    }

    // Takes each tensor of the version that is read when it has come whole, in their order: casts it, and tells the
    // caller.
    void take_whole() {
        if (std::exchange(generation_, source_->generation()) != source_->generation()) {
            taken_ = 0;
            received_ = -1;
        }
        if (generation_ == 0) return;
        if (options_.progress) tell_progress();
        for (; taken_ < tensors_.size() && source_->missing()[taken_] == 0; ++taken_) {
            const std::span<const std::byte> tile = tiles_.take(taken_);
            if (options_.arrived) options_.arrived(taken_, tile);
        }
    }

    void tell_progress() {
        const auto sum = [](const std::vector<Index>& all) {
            return std::accumulate(all.begin(), all.end(), Index{0});
        };
        const Index bytes = sum(source_->bytes());
        const Index received = bytes - sum(source_->missing());
        if (std::exchange(received_, received) != received) options_.progress(received, bytes);
    }

    void hear() {
        copy_some();
        while (const auto news = source_->next()) {
            if (news->message)
                state_->receive(news->rank, *news->message, milliseconds_now());
            else if (!news->reason.empty())
                state_->lost(news->rank, news->reason);
            if (news->fetched != 0) state_->fetched(news->fetched, news->rank, news->reason);
        }
    }

    // Copies tensors from shared memory for a short while, so that leases are renewed and losses are noticed between.
    void copy_some() {
        for (Index copied = 0; copied < copied_at_once;) {
            const Index bytes = source_->copy_tensor();
            if (bytes == 0) return;
            copied += bytes;
            take_whole();
        }
    }

    void carry_out(const Action& action) {
        if (const auto* send = std::get_if<Send>(&action)) source_->send(send->peer, send->message);
        if (const auto* fetch = std::get_if<Fetch>(&action)) {
            const Result<bool> there = source_->fetch(fetch->peer, *fetch, tiles_.landing());
            if (!there || *there) state_->fetched(fetch->generation, fetch->peer, there ? "" : there.error().message);
        }
        if (const auto* sum = std::get_if<Sum>(&action)) {
            take_whole();
            state_->summed(sum->generation, source_->part());
        }
        if (const auto* gather = std::get_if<Gather>(&action)) vote(gather->vote);
        if (std::get_if<Activate>(&action) != nullptr) tiles_.turn();
    }

    // A rank of this job that does not vote within a lease counts as lost.
    void vote(const Vote& mine) {
        const auto gathered = group_->gather(bytes_of(mine), options_.lease);
        if (!gathered) return state_->gather_failed(gathered.error().message);
        std::vector<Vote> votes;
        for (const std::string& bytes : *gathered)
            if (auto one = vote_of(bytes)) votes.push_back(std::move(*one));
        if (votes.size() != gathered->size()) return state_->gather_failed("a rank of this job is in another call");
        state_->gathered(votes, milliseconds_now());
    }

    std::string endpoint_;
    std::vector<WantedTensor> wanted_;
    std::vector<NamedTensor> tensors_;  // the same
    SubscribeOptions options_;
    Group* group_ = nullptr;
    Index ranks_ = 0;
    Index rank_ = 0;
    WantedTiles tiles_;
    std::optional<Source> source_;
    std::optional<SubscriberState> state_;
    Index generation_ = 0;   // of the version that is read
    std::size_t taken_ = 0;  // tensors of it, from the first on
    Index received_ = 0;     // bytes that the caller knows of
};

Subscriber::Subscriber(std::unique_ptr<Session> session) : session_(std::move(session)) {}
Subscriber::Subscriber(Subscriber&&) noexcept = default;
Subscriber& Subscriber::operator=(Subscriber&&) noexcept = default;
Subscriber::~Subscriber() = default;

Result<Subscriber> Subscriber::connect(Group& group, const std::string& endpoint, std::span<const WantedTensor> tensors,
                                       const SubscribeOptions& options) {
    auto session = std::make_unique<Session>(endpoint, tensors, options);
    RESHARD_CHECK(session->connect(group));
    return Subscriber(std::move(session));
}

Result<Index> Subscriber::update(std::chrono::milliseconds limit) { return session_->update(limit); }
Result<std::optional<Index>> Subscriber::poll() { return session_->poll(); }
Index Subscriber::version() const { return session_->version(); }
Result<std::span<const std::byte>> Subscriber::tile(std::size_t tensor) const { return session_->tile(tensor); }
Result<void> Subscriber::reconnect(Group& group) { return session_->connect(group); }
void Subscriber::close() { session_->close(); }

}  // namespace reshard::live
