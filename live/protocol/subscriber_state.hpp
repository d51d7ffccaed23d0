// The protocol of one rank of a subscriber, as a state machine without I/O and without a clock.
//
// The rule that keeps versions whole: a rank that votes to activate a version stops serving the old one, and serves
// nothing until it knows the result. All ranks must vote yes, so at no moment do two ranks serve different versions,
// whatever is lost, late or dead. A rank that never learns the result stays in doubt until it joins again.
//
// In place, a read overwrites the version that is served. So a rank serves nothing from the beginning of a read on,
// until it knows that all ranks have the new version whole.
#pragma once

#include <string>
#include <vector>

#include "live/protocol/message.hpp"

namespace reshard::live {

/// Updates are collective: all ranks of the subscriber start the same number of them. The votes that one gather returns
/// must be the same on all ranks where it succeeds; it may fail on some and succeed on others. Times are milliseconds
/// of any one clock.
class SubscriberState {
public:
    enum class Phase { joining, idle, waiting, proposing, reading, summing, voting, broken };

    SubscriberState(std::size_t publishers, Index lease, Standing before, bool in_place);

    void join(std::uint64_t layouts, Index now);  ///< first: compares the layouts' digest, and resolves doubts
    /// Begins an update. If `patient`, it waits for a newer version until give_up(). pre: idle or broken.
    void start(bool patient, Index now);
    void give_up();  ///< ends the wait for a newer version

    void receive(std::size_t publisher, const Message& it, Index now);           ///< a publisher's rank said it
    void lost(std::size_t publisher, std::string reason);                        ///< its connection is closed
    void fetched(Index generation, std::size_t publisher, std::string failure);  ///< empty: all bytes came
    void summed(Index generation, std::uint64_t content);                        ///< see Sum
    void gathered(const std::vector<Vote>& votes, Index now);                    ///< of all ranks, in their order
    void gather_failed(std::string reason);                                      ///< a rank of this job is lost
    void tick(Index now);                                                        ///< looks at the deadlines
    [[nodiscard]] Index next_tick(Index now) const;                              ///< when tick() has work
    [[nodiscard]] std::vector<Action> take();                                    ///< in order; each is returned once

    /// The version that readers see; 0: none, or in doubt.
    [[nodiscard]] Index serving() const { return doubt_ == 0 && serves_ ? active_ : 0; }
    [[nodiscard]] Standing standing() const { return {active_, doubt_, floor_, part_, content_}; }
    [[nodiscard]] Phase phase() const { return phase_; }

private:
    enum class Reading { asked, granted, done };
    struct Publisher {
        Index newest = 0;
        Index heard = 0;  // when; a vote or a new try does not count as silence
        Index spoke = 0;  // when, or when the update began
        Reading reading = Reading::asked;
        bool is_lost = false;
    };
    void wait(Index now);
    void listen(Index now);
    void propose();
    void read(Index version, Index now);
    void vote(Answer answer, std::uint64_t content, std::string reason);
    void after_propose(const std::vector<Vote>& votes, Index now);
    void after_activate(const std::vector<Vote>& votes, Index now);
    void after_join(const std::vector<Vote>& votes);
    void fail_reading(Answer answer, std::string reason);
    void look();
    void look_for_silence(Index now);
    void end_reading();
    void finish(Index version, std::string reason);
    void break_off(std::string reason);
    [[nodiscard]] Index candidate() const;
    [[nodiscard]] Index least() const;
    [[nodiscard]] bool drained() const;

    Index lease_;
    bool in_place_;  // reads overwrite the version that is served
    std::vector<Publisher> publishers_;
    Phase phase_ = Phase::joining;
    Index active_;
    Index doubt_;
    Index floor_;          // no older version is ever taken
    bool serves_ = false;  // `active_` is on all ranks
    bool patient_ = false;
    std::string failure_;    // sticky: a publisher's rank is lost, or this job has broken
    Index generation_ = 0;   // of the last read
    Index version_ = 0;      // that is read
    std::uint64_t content_;  // of the version that is read
    std::uint64_t part_;     // this rank's part of it
    bool content_known_ = false;
    Answer answer_ = Answer::yes;
    std::string reason_;
    Index deadline_ = 0;  // of the grants
    Index next_want_ = 0;
    std::vector<Action> actions_;
};

}  // namespace reshard::live
