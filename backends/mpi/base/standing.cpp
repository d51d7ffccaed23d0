#include "backends/mpi/base/standing.hpp"

#include <fmt/format.h>

#include "backends/common/waits.hpp"

namespace reshard::mpi {

Standing::Standing(const Roll& roll) : post_(roll.post()), key_(roll.key()), rank_(roll.rank()) {
    post_->open_executor(key_);
}

Standing::~Standing() {
    if (!usable()) return;
    if (!failed_) send(Word::dropped, runs_);
    post_->close_executor(key_, {std::move(communicators_), {peers_.begin(), peers_.end()}, runs_, !failed_});
}

void Standing::send(Word word, std::uint64_t runs, std::string_view text) const {
    Letter letter;
    letter.word = word;
    letter.rank = rank_;
    letter.backend = key_.first;
    letter.number = key_.second;
    letter.value = runs;
    letter.write(text);
    for (const int peer : peers_) post_->send(peer, letter);
}

void Standing::start() {
    ++runs_;
    if (std::exchange(excused_, false)) send(Word::started, runs_);
}

void Standing::finish() { finished_ = runs_; }

void Standing::abandon(const Error& why) {
    fail();
    if (std::exchange(told_, true) || !usable()) return;
    send(Word::failed, finished_ + 1, why.message);
}

void Standing::report_failure(const Error& why) {
    if (failed_ || !usable()) return;
    excused_ = true;
    send(Word::excused, runs_, why.message);
}

std::string Standing::missing(const std::set<int>& awaited) const {
    const auto notices = post_->notices(key_);
    std::vector<int> others;
    std::vector<int> first;
    for (const int peer : peers_) {
        const auto notice = notices.find(peer);
        if (notice != notices.end() && notice->second.letter.word == Word::waiting &&
            notice->second.letter.value >= runs_)
            continue;
        (awaited.contains(peer) ? first : others).push_back(peer);
    }
    if (first.empty()) first = others.empty() ? std::vector<int>(awaited.begin(), awaited.end()) : others;
    return ranks_in_words(first);
}

// A failure in a run that the peer began before is still on its way to this rank. A peer cannot fail runs that it has
// finished.
std::optional<std::string> Standing::trouble(const std::set<int>& awaited, Post::Look look) const {
    for (const auto& [rank, notice] : post_->notices(key_, look)) {
        const Letter& letter = notice.letter;
        if (!awaited.contains(rank)) continue;
        if (letter.word == Word::failed && letter.value <= runs_)
            return fmt::format("rank {} failed: {}", rank, letter.message());
        if (letter.value >= runs_) continue;
        if (letter.word == Word::dropped) return fmt::format("rank {} dropped its executor", rank);
        if (letter.word == Word::excused && Post::Clock::now() - notice.heard > second_try)
            return fmt::format("rank {}: {}", rank, letter.message());
    }
    return std::nullopt;
}

}  // namespace reshard::mpi
