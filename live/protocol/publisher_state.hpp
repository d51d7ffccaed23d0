// The protocol of one rank of a publisher, as a state machine without I/O and without a clock.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "live/protocol/message.hpp"
#include "reshard/result.hpp"

namespace reshard::live {

/// The state of a version at this rank of the publisher.
enum class VersionState {
    none,       ///< never seen, or dropped
    staged,     ///< copied on this rank, and not yet known to be on all ranks
    ready,      ///< on all ranks; subscribers may read it
    active,     ///< ready, and a subscriber reads it
    releasing,  ///< a newer version is ready; it stays because a subscriber reads it
};

[[nodiscard]] std::string_view name(VersionState state);  ///< its enumerator

/// Keeps the newest ready version, the one before it, and every version with a lease. The content of a kept version
/// never changes, so a late reader reads old bytes and never mixed ones. Times are milliseconds of any one clock.
class PublisherState {
public:
    explicit PublisherState(Index lease) : lease_(lease) {}

    /// A version is copied on this rank. Errors: usage (not newer than all before it).
    [[nodiscard]] Result<void> stage(Index version);
    /// The staged version is on all ranks of the publisher. Tells all subscribers. pre: it is staged.
    void ready(Index version, std::uint64_t content);
    /// The staged version is not on all ranks. pre: it is staged.
    void unstage(Index version);

    void join(std::size_t subscriber, Index now);                        ///< a subscriber's rank has connected
    void receive(std::size_t subscriber, const Message& it, Index now);  ///< it said something
    void leave(std::size_t subscriber);                                  ///< its connection is closed
    void tick(Index now);                      ///< ends the leases that ran out, and repeats the signs of life
    [[nodiscard]] Index next_tick() const;     ///< when tick() has work; index_max: never
    [[nodiscard]] std::vector<Action> take();  ///< Send and Drop, in order; each is returned once

    [[nodiscard]] VersionState state_of(Index version) const;
    [[nodiscard]] std::vector<Index> kept() const;          ///< versions with memory, oldest first
    [[nodiscard]] Index newest() const { return newest_; }  ///< ready; 0: none
    [[nodiscard]] std::size_t reader_count() const;         ///< subscribers' ranks with a lease

private:
    struct Version {
        std::uint64_t content = 0;
        bool lapsed = false;  // a lease on it ran out, so its reader may still read
    };
    struct Subscriber {
        Index generation = 0;  // the last one it wanted or released
        Index version = 0;     // with a lease; 0: none
        Index expires = 0;
    };
    void say(std::size_t subscriber, const Message& message) { actions_.emplace_back(Send{subscriber, message}); }
    void end_lease(Subscriber& one, bool lapsed);
    void drop_unneeded();
    [[nodiscard]] std::size_t readers_of(Index version) const;

    Index lease_;
    Index newest_ = 0;
    Index before_ = 0;  // the version before the newest
    Index staged_ = 0;
    Index last_staged_ = 0;
    Index next_sign_ = index_max;
    std::map<Index, Version> kept_;
    std::map<std::size_t, Subscriber> subscribers_;
    std::vector<Action> actions_;
};

}  // namespace reshard::live
