// The processes, networks and gathers of the simulation. All randomness comes from one seed.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "reshard/model/digest.hpp"
#include "src/base/hash.hpp"
#include "tests/live/simulation.hpp"

namespace reshard::live::test {

inline constexpr Index lease = 40;
inline constexpr Index patience = 60;
inline constexpr std::size_t cells =
    6;  // of each publisher's rank; rank r of a group reads the cells k with k % ranks == r

inline std::uint64_t right_cell(Index version, std::size_t publisher, std::size_t cell) {
    return mixed(static_cast<std::uint64_t>(version), publisher * cells + cell) % Digest::prime;
}

inline std::uint64_t add(std::uint64_t a, std::uint64_t b) { return (Digest{a, 0} + Digest{b, 0}).sum; }

using Segment = std::array<std::uint64_t, cells>;
using Buffer = std::map<std::pair<std::size_t, std::size_t>, std::uint64_t>;  // of publisher and cell

struct Process {
    bool alive = true;
    Index stalled_until = 0;
    Index wakes = index_max;  // the time of its next tick
};

struct PublisherRank : Process {
    explicit PublisherRank() : state(lease) {}
    PublisherState state;
    std::map<Index, std::shared_ptr<Segment>> segments;
    std::vector<std::shared_ptr<Segment>> spare;
};

struct SubscriberRank : Process {
    SubscriberRank(std::size_t peers, Standing before, bool one_buffer)
        : state(peers, lease, before, one_buffer), in_place(one_buffer) {}
    SubscriberState state;
    Buffer visible, hidden;  // in place nothing is hidden
    bool in_place;
    Buffer& filled() { return in_place ? visible : hidden; }
    std::size_t connection = 0;  // its number at the publishers
    std::vector<std::shared_ptr<PublisherRank>> publishers;
    std::size_t rounds = 0;
    std::set<std::size_t> cut;  // publishers
    Index started = 0;
    bool updating = false, excused = false;  // excused: it was stalled during the update
    Index seen = 0;                          // the newest version it has served
};

struct Round {
    std::vector<std::optional<Vote>> votes;
    bool over = false;
};

struct Group {
    std::vector<std::shared_ptr<SubscriberRank>> ranks;
    std::vector<Round> rounds;
    bool broken = false;
    bool in_place = false;
    Index seen = 0;  // the newest version that any rank has served
    int epoch = 0;   // joins
};

class World {
public:
    World(std::uint64_t seed, const Faults& faults) : random_(seed), faults_(faults) {}

    Tally run();

private:
    static constexpr Index misfortune_end = 250;
    static constexpr Index end = 400;

    struct Event {
        Index time = 0;
        std::uint64_t order = 0;
        std::function<void()> what;
        bool operator<(const Event& other) const { return std::tie(time, order) > std::tie(other.time, other.order); }
    };
    using Shared = std::shared_ptr<SubscriberRank>;

    std::size_t draw(std::size_t below) { return std::uniform_int_distribution<std::size_t>(0, below - 1)(random_); }
    bool chance(int of_1000) { return of_1000 > 0 && draw(1000) < static_cast<std::size_t>(of_1000); }
    void after(std::size_t wait, std::function<void()> what) {
        events_.push({now_ + static_cast<Index>(wait), order_++, std::move(what)});
    }
    // Runs `what` in a process: later if it is stalled, and never if it is dead.
    void in(std::shared_ptr<Process> process, std::size_t wait, std::function<void()> what);

    // --- publishers
    void commit();

    // Writes cell by cell into a spare segment, as a copy does, and stages at last.
    void stage(const std::shared_ptr<PublisherRank>& rank, std::size_t p, Index version);

    // The gather of a commit: it succeeds on all ranks, on none, or on some if a rank dies in it.
    void agree(const std::vector<std::shared_ptr<PublisherRank>>& ranks, Index version, std::size_t epoch);

    // A new job in the place of the old one. It may begin its versions anew.
    void restart_publishers();

    void act(const std::vector<std::shared_ptr<PublisherRank>>& ranks, std::size_t p);

    // One wake-up at a time: the earliest.
    void wake(const std::vector<std::shared_ptr<PublisherRank>>& ranks, std::size_t p);

    // --- the network
    template <class Deliver>
    void carry(const Deliver& deliver) {
        if (chance(faults_.lose)) return;
        const int times = chance(faults_.repeat) ? 2 : 1;
        for (int i = 0; i < times; ++i) deliver(1 + draw(3) + (chance(faults_.delay) ? draw(2 * lease) : 0));
    }

    void to_subscriber(const std::vector<std::shared_ptr<PublisherRank>>& ranks, std::size_t p, const Shared& to,
                       const Message& message);

    void to_publisher(const Shared& from, std::size_t p, const Message& message);

    // --- subscribers
    void join(Group& group);

    [[nodiscard]] bool survives(const Shared& rank) const { return rank && rank->alive && rank->stalled_until <= now_; }

    void begin(const Shared& rank);

    // The old process is over for the session: its connections close, and its copies end.
    void close(const Shared& rank);

    Group& group_of(const Shared& rank);

    void act(const Shared& rank);

    void wake(const Shared& rank);

    // Reads cell by cell at different times, from the memory that came with the grant.
    void copy(const Shared& rank, const Fetch& fetch);
    void copy_from(const Shared& rank, const Fetch& fetch, const std::shared_ptr<Segment>& segment, std::size_t k,
                   std::size_t step);

    void finish(const Shared& rank, const Finished& finished);

    // --- the gathers of a group
    void vote(const Shared& rank, const Vote& vote);

    // The root sends the result rank by rank, and may die on the way.
    void deliver(Group& group, Round& round);

    void fail_one(const Shared& rank);
    void fail_all(Group& group);

    // --- faults
    void die(const std::shared_ptr<PublisherRank>& rank);
    void die(const Shared& rank);

    void misfortune();

    // --- the invariants
    void look();
    void broken(const std::string& what);

    std::mt19937_64 random_;
    Faults faults_;
    bool checks_ = true;
    Index now_ = 0;
    Index version_ = 0;
    std::uint64_t order_ = 0;
    std::size_t last_connection_ = 0;
    std::size_t publisher_epoch_ = 0;
    std::priority_queue<Event> events_;
    std::vector<std::shared_ptr<PublisherRank>> publishers_;
    std::vector<Group> groups_;
    std::map<std::size_t, Shared> connections_;
    std::map<std::tuple<std::size_t, std::size_t, Index>, std::shared_ptr<Segment>> granted_;
    Tally tally_;
};

}  // namespace reshard::live::test
