// The state of an executor on each rank.
#pragma once

#include <optional>
#include <string>

#include "backends/mpi/base/roll.hpp"

namespace reshard::mpi {

/// A rank in one executor, and its knowledge of its peers there. Its peers are the ranks that send messages to it or
/// get messages from it.
class Standing : NonCopyable {
public:
    /// The executor that the last call to prepare makes.
    explicit Standing(const Roll& roll);
    ~Standing();  ///< tells the peers that it was dropped

    void meet(std::set<int> peers) { peers_ = std::move(peers); }
    /// Freed when no peer can send on it any more.
    void own(Communicator communicator) { communicators_.push_back(std::move(communicator)); }

    void start();   ///< one run more
    void finish();  ///< it went well
    /// What is left of the run is given up; then its peers are told, when none of their messages is received any more.
    void fail() { failed_ = true; }
    void abandon(const Error& why);
    void report_failure(const Error& why);
    [[nodiscard]] bool failed() const { return failed_; }

    /// This rank waits long in the run that is in flight; for missing().
    void say_waiting() const { send(Word::waiting, runs_); }
    /// The awaited peers that are not known to wait in the run themselves, or else any peers; in words.
    [[nodiscard]] std::string missing(const std::set<int>& awaited) const;

    /// Why one of the awaited peers will not take part in the run that is in flight; nothing when all may.
    [[nodiscard]] std::optional<std::string> trouble(const std::set<int>& awaited,
                                                     Post::Look look = Post::Look::always) const;
    /// The same of all peers, before it begins.
    [[nodiscard]] std::optional<std::string> trouble() const { return trouble(peers_, Post::Look::seldom); }

private:
    void send(Word word, std::uint64_t runs, std::string_view text = {}) const;

    std::shared_ptr<Post> post_;
    ExecutorKey key_;
    int rank_;
    std::set<int> peers_;
    std::vector<Communicator> communicators_;
    std::uint64_t runs_ = 0;
    std::uint64_t finished_ = 0;
    bool failed_ = false;
    bool told_ = false;
    bool excused_ = false;
};

}  // namespace reshard::mpi
