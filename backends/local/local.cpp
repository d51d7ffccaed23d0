// The ranks of one process and how they meet. The rank that starts last carries out the run for all.
#include "reshard/backends/local.hpp"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include "backends/common/fingerprints.hpp"
#include "backends/common/waits.hpp"
#include "backends/local/deliver.hpp"
#include "src/copy/page_memory.hpp"
#include "src/tables/capabilities.hpp"

namespace reshard::local {
namespace {

// Ranks agree and then prepare; a rank that failed agrees but does not prepare. So what the others prepared is found
// by both counts: agreements so far, and preparations since the last one.
struct SessionKey {
    std::size_t agreement = 0;
    std::size_t prepared_since = 0;
    friend auto operator<=>(const SessionKey&, const SessionKey&) = default;
};

struct Run {
    std::vector<Party> parties;
    Index started = 0;
    bool done = false;
    std::vector<double> seconds;
};

using Clock = std::chrono::steady_clock;

// Why a rank does not start, and from when on the others take it for that.
struct Absence {
    Error why;
    Clock::time_point from;
};

// The schedules that the ranks prepared together. A session that failed stays failed: buffers of a failed run may be
// gone.
struct Session {
    std::vector<std::vector<RankPlan>> plans;  // by rank
    Index prepared = 0;                        // ranks so far
    std::shared_ptr<Run> run;                  // the one that is being started
    std::optional<Error> error;
    std::map<Index, Absence> absent;  // ranks that will not start a run, or could not so far
};

// The fingerprints of one agreement, as they come in.
struct Agreement {
    std::vector<std::optional<Brought>> brought;  // by rank
    std::optional<Error> error;
};

}  // namespace

struct World::Shared {
    Shared(Index ranks, std::chrono::milliseconds longest) : size(ranks), timeout(longest) {}

    Agreement& agreement(std::size_t number) {
        Agreement& found = agreements[number];
        found.brought.resize(static_cast<std::size_t>(size));
        return found;
    }
    std::shared_ptr<Session> session(SessionKey key) {
        std::shared_ptr<Session>& found = sessions[key];
        if (!found) found = std::make_shared<Session>();
        found->plans.resize(static_cast<std::size_t>(size));
        return found;
    }

    const Index size;
    const std::chrono::milliseconds timeout;
    std::mutex mutex;
    std::condition_variable changed;
    std::map<std::size_t, Agreement> agreements;
    std::map<SessionKey, std::shared_ptr<Session>> sessions;
    std::map<std::vector<Index>, std::shared_ptr<Shared>> groups;  // by their ranks
};

namespace {

// A rank's view of a session.
struct Member {
    World::Shared* world;
    std::shared_ptr<Session> session;
    SessionKey key;
    Index rank;

    // pre: the world's mutex is held.
    [[nodiscard]] std::optional<Error> error() const {
        const auto agreed = world->agreements.find(key.agreement);
        if (agreed != world->agreements.end() && agreed->second.error) return agreed->second.error;
        return session->error;
    }
    // pre: as of error.
    void be_absent(std::string_view what, Clock::time_point from) const {
        const auto known = session->absent.find(rank);
        if (known != session->absent.end() && known->second.from <= from) return;
        session->absent[rank] = {{Code::backend, fmt::format("rank {}{}", rank, what)}, from};
        world->changed.notify_all();
    }
    // The first rank of the run that has not started and is absent; pre: as of error.
    [[nodiscard]] const Absence* absence_in(const Run& run) const {
        const Absence* first = nullptr;
        for (const auto& [missing, absence] : session->absent) {
            if (run.parties[static_cast<std::size_t>(missing)].plans != nullptr) continue;
            if (first == nullptr || absence.from < first->from) first = &absence;
        }
        return first;
    }
    [[nodiscard]] bool has_started() const {
        return session->run && session->run->parties[static_cast<std::size_t>(rank)].plans != nullptr;
    }
    Error end(const Error& error) const {
        session->error = error;
        world->changed.notify_all();
        return error;
    }
    [[nodiscard]] Error timed_out(const Run& run) const {
        Index missing = 0;
        while (run.parties[static_cast<std::size_t>(missing)].plans != nullptr) ++missing;
        return Error{Code::backend, fmt::format("rank {} waited {} ms for rank {}, which never started", rank,
                                                world->timeout.count(), missing)};
    }
};

class LocalTicket final : public Ticket {
public:
    LocalTicket(Member member, std::shared_ptr<Run> run) : member_(std::move(member)), run_(std::move(run)) {}
    ~LocalTicket() override { static_cast<void>(wait()); }

    Result<bool> test() override {
        const std::lock_guard lock(member_.world->mutex);
        const auto now = Clock::now();
        const auto done = poll(now);
        if (!done || *done) return done;
        waited_ += now - polled_ - forgiven(now - polled_, member_.world->timeout);
        polled_ = now;
        if (waited_ < member_.world->timeout) return false;
        return tl::unexpected(member_.end(member_.timed_out(*run_)));
    }
    Result<bool> wait_for(Index microseconds) override {
        return wait_until(Clock::now() + std::chrono::microseconds(microseconds));
    }
    Result<void> wait() override {
        return wait_until(Clock::time_point::max()).map([](bool) {});
    }

private:
    // A wait is cut into parts. If this rank wakes late, the system ran other processes, and that time does not count.
    Result<bool> wait_until(Clock::time_point until) {
        auto begin = Clock::now();
        std::unique_lock lock(member_.world->mutex);
        for (auto now = begin;; now = Clock::now()) {
            const auto done = poll(now);
            if (!done || *done) return done;
            if (waited_ + (now - begin) >= member_.world->timeout) {
                return tl::unexpected(member_.end(member_.timed_out(*run_)));
            }
            if (now >= until) {
                waited_ += now - begin;
                polled_ = now;
                return false;
            }
            const Clock::duration part = std::max<Clock::duration>(member_.world->timeout / 4, std::chrono::seconds(1));
            auto next = std::min({until, now + part, begin + (member_.world->timeout - waited_)});
            if (const Absence* absence = member_.absence_in(*run_)) next = std::min(next, absence->from);
            member_.world->changed.wait_until(lock, next);
            begin += std::max(Clock::now() - next, Clock::duration::zero());
        }
    }
    // pre: the world's mutex is held.
    Result<bool> poll(Clock::time_point now) const {
        if (run_->done) return true;
        if (auto error = member_.error()) return tl::unexpected(*error);
        const Absence* absence = member_.absence_in(*run_);
        if (absence != nullptr && absence->from <= now) return tl::unexpected(member_.end(absence->why));
        return false;
    }

    Member member_;
    std::shared_ptr<Run> run_;
    Clock::duration waited_{};  // while somebody polled
    Clock::time_point polled_ = Clock::now();
};

class LocalBound final : public Bound {
public:
    LocalBound(Member member, std::vector<Buffers> buffers)
        : member_(std::move(member)), buffers_(std::move(buffers)) {}

    Result<std::unique_ptr<Ticket>> start() override {
        const std::lock_guard lock(member_.world->mutex);
        if (auto error = member_.error()) return tl::unexpected(*error);
        Session& session = *member_.session;
        if (!session.run) {
            session.run = std::make_shared<Run>();
            session.run->parties.resize(static_cast<std::size_t>(member_.world->size));
        }
        const auto rank = static_cast<std::size_t>(member_.rank);
        if (session.run->parties[rank].plans != nullptr) {
            return fail(Code::mismatch, fmt::format("rank {} has a run in flight already", rank));
        }
        session.absent.erase(member_.rank);
        session.run->parties[rank] = {&session.plans[rank], buffers_};
        last_ = session.run;
        if (++session.run->started == member_.world->size) carry_out(session);
        return std::make_unique<LocalTicket>(member_, last_);
    }
    [[nodiscard]] std::vector<double> step_seconds() const override {
        const std::lock_guard lock(member_.world->mutex);
        return last_ ? last_->seconds : std::vector<double>{};
    }

private:
    void carry_out(Session& session) const {
        auto seconds = deliver(session.run->parties);
        if (seconds) {
            session.run->seconds = std::move(*seconds);
            session.run->done = true;
        } else {
            session.error = seconds.error();
        }
        session.run.reset();
        member_.world->changed.notify_all();
    }

    Member member_;
    std::vector<Buffers> buffers_;
    std::shared_ptr<Run> last_;
};

class LocalPrepared final : public Prepared {
public:
    explicit LocalPrepared(Member member) : member_(std::move(member)) {}
    ~LocalPrepared() override { be_absent(" dropped its executor", Clock::now()); }
    [[nodiscard]] Index staging_bytes() const override { return 0; }
    Result<std::unique_ptr<Bound>> bind(std::span<const Buffers> buffers) override {
        return std::make_unique<LocalBound>(member_, std::vector<Buffers>(buffers.begin(), buffers.end()));
    }
    // Also ends the run that this rank has started and may wait in.
    void abandon(const Error& why) override {
        const std::string failed = " failed: " + why.message;
        be_absent(failed, Clock::now());
        const std::lock_guard lock(member_.world->mutex);
        if (!member_.error() && member_.has_started())
            member_.end({Code::backend, fmt::format("rank {}{}", member_.rank, failed)});
    }
    void report_failure(const Error& why) override { be_absent(": " + why.message, Clock::now() + second_try); }

private:
    void be_absent(std::string_view what, Clock::time_point from) const {
        const std::lock_guard lock(member_.world->mutex);
        member_.be_absent(what, from);
    }

    Member member_;
};

class LocalBackend final : public Backend {
public:
    LocalBackend(World::Shared& world, Index rank) : world_(world), rank_(rank) {}
    ~LocalBackend() override { drop_kept(); }
    [[nodiscard]] std::string_view name() const override { return "local"; }
    [[nodiscard]] Index rank() const override { return rank_; }
    [[nodiscard]] Index size() const override { return world_.size; }
    // As the oracle it runs every step as the plan has it.
    [[nodiscard]] Capabilities capabilities() const override { return tables::local_capabilities(true, world_.size); }
    Result<std::unique_ptr<Memory>> allocate(Index bytes) override { return allocate_pages(bytes); }

    Result<void> agree(const Result<std::uint64_t>& own) override {
        const std::lock_guard lock(world_.mutex);
        key_ = {key_.agreement + 1, 0};
        Agreement& agreement = world_.agreement(key_.agreement);
        agreement.brought[static_cast<std::size_t>(rank_)] = own;
        if (!agreement.error) {
            if (auto same = same_plans(agreement.brought); !same) agreement.error = same.error();
        }
        if (!agreement.error) {
            // Nobody asks again about an agreement that all have joined.
            if (std::ranges::all_of(agreement.brought, &std::optional<Brought>::has_value)) {
                world_.agreements.erase(key_.agreement);
            }
            return {};
        }
        world_.changed.notify_all();
        return tl::unexpected(own ? *agreement.error : own.error());
    }

    Result<std::unique_ptr<Prepared>> prepare(std::vector<RankPlan> plans) override {
        const std::lock_guard lock(world_.mutex);
        Member member{&world_, world_.session(key_), key_, rank_};
        member.session->plans[static_cast<std::size_t>(rank_)] = std::move(plans);
        if (++member.session->prepared == world_.size) world_.sessions.erase(key_);  // its members keep it
        ++key_.prepared_since;
        return std::make_unique<LocalPrepared>(std::move(member));
    }

private:
    Result<std::unique_ptr<Backend>> make_group(std::span<const Index> ranks) override {
        const std::lock_guard lock(world_.mutex);
        auto& world = world_.groups[{ranks.begin(), ranks.end()}];
        if (!world) world = std::make_shared<World::Shared>(std::ssize(ranks), world_.timeout);
        return std::make_unique<LocalBackend>(*world, std::ranges::lower_bound(ranks, rank_) - ranks.begin());
    }

    World::Shared& world_;
    Index rank_;
    SessionKey key_;
};

// Stands for all ranks of a world that has too many.
class TooMany final : public Backend {
public:
    explicit TooMany(Index ranks) : ranks_(ranks) {}
    ~TooMany() override { drop_kept(); }
    [[nodiscard]] std::string_view name() const override { return "local"; }
    [[nodiscard]] Index rank() const override { return 0; }
    [[nodiscard]] Index size() const override { return ranks_; }
    Result<std::unique_ptr<Memory>> allocate(Index) override { return why(); }
    Result<void> agree(const Result<std::uint64_t>&) override { return why(); }
    Result<std::unique_ptr<Prepared>> prepare(std::vector<RankPlan>) override { return why(); }

private:
    [[nodiscard]] tl::unexpected<Error> why() const {
        return fail(Code::unsupported, fmt::format("{} ranks in one process; at most {} are made", ranks_, ranks_max));
    }

    Index ranks_;
};

}  // namespace

World::World(Index ranks, const Options& options) : shared_(std::make_unique<Shared>(ranks, options.timeout)) {
    if (ranks > ranks_max) {
        backends_.push_back(std::make_unique<TooMany>(ranks));
        return;
    }
    for (Index rank = 0; rank < ranks; ++rank) backends_.push_back(std::make_unique<LocalBackend>(*shared_, rank));
}

World::~World() = default;

Backend& World::rank(Index rank) { return *backends_[size() > ranks_max ? 0 : static_cast<std::size_t>(rank)]; }

Index World::size() const { return shared_->size; }

}  // namespace reshard::local
