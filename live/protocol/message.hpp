// The messages between the two jobs of a session, and the votes of a subscriber's ranks.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "reshard/planner/integer.hpp"

namespace reshard::live {

/// The words of the protocol. A subscriber's rank says want and release, a publisher's rank says the others.
enum class Word : std::uint8_t {
    ready,    ///< the publisher's newest version; said again as a sign of life
    want,     ///< wants to read a version in a generation; said again to renew the lease
    granted,  ///< the version will stay readable as long as the lease lives
    gone,     ///< the publisher no longer keeps the version; `version` is the newest one
    release,  ///< the subscriber reads nothing of the generation any more
};

/// One message. Messages may be lost, repeated, late and out of order.
struct Message {
    Word word = Word::ready;
    Index generation = 0;       ///< of want, granted, gone and release: counts the reads of one subscriber's rank
    Index version = 0;          ///< from 1 on; 0: none yet
    std::uint64_t content = 0;  ///< of granted: the digest of the version, the same in every layout
    friend bool operator==(const Message&, const Message&) = default;
};

/// Which question the ranks of a subscriber answer together.
enum class Question : std::uint8_t { join, propose, activate };

/// The answer of one rank. `gone` asks for another try with a newer version.
enum class Answer : std::uint8_t { yes, gone, failed };

/// The knowledge of a rank that joins a session. It is empty at first; later the session before has left it.
struct Standing {
    Index active = 0;           ///< the last version that it activated; 0: none
    Index doubt = 0;            ///< a version that it read and voted for without learning the result; 0: none
    Index floor = 0;            ///< no older version than this may be served again
    std::uint64_t part = 0;     ///< this rank's part of the digest of the version in doubt
    std::uint64_t content = 0;  ///< the digest of the version in doubt
    friend bool operator==(const Standing&, const Standing&) = default;
};

/// The vote of one rank for the ranks of its own job. All ranks receive the votes of all.
struct Vote {
    Question question = Question::join;
    Answer answer = Answer::yes;
    Index version = 0;          ///< propose: the newest that it can read; activate: the one that it has read
    std::uint64_t content = 0;  ///< join: the digest of all layouts; activate: this rank's part of the version's digest
    Standing standing = {};     ///< of join
    std::string reason = {};    ///< of failed: one sentence
    friend bool operator==(const Vote&, const Vote&) = default;
};

/// The requests of a state machine to the program around it.
struct Send {  ///< send a message
    std::size_t peer = 0;
    Message message;
};
struct Drop {  ///< the publisher no longer needs the memory of a version
    Index version = 0;
    bool reusable = false;  ///< false: a reader may still look at it, so it must be given back to the system, unchanged
};
struct Fetch {  ///< copy the rows of a version from a peer into the hidden buffers; then call fetched()
    std::size_t peer = 0;
    Index generation = 0;
    Index version = 0;
};
struct Sum {  ///< compute this rank's part of the version's digest; then call summed()
    Index generation = 0;
};
struct Gather {  ///< send the vote to all ranks of the job; then call gathered() or gather_failed()
    Vote vote;
};
struct Activate {  ///< the hidden buffers become the ones that readers see
    Index version = 0;
};
struct Finished {             ///< an update ends
    Index version = 0;        ///< the new version; 0: no newer one
    std::string reason = {};  ///< one sentence if it failed; else empty
    friend bool operator==(const Finished&, const Finished&) = default;
};
using Action = std::variant<Send, Drop, Fetch, Sum, Gather, Activate, Finished>;

}  // namespace reshard::live
