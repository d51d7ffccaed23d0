#include "live/protocol/subscriber_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "reshard/model/digest.hpp"

namespace reshard::live {
namespace {

// The first vote that is not yes, with the number of its rank; -1: all are yes.
std::ptrdiff_t first_refusal(const std::vector<Vote>& votes, Answer answer) {
    const auto found = std::ranges::find(votes, answer, &Vote::answer);
    return found == votes.end() ? -1 : found - votes.begin();
}

std::string refusal(const std::vector<Vote>& votes, std::ptrdiff_t rank) {
    const std::string& reason = votes[static_cast<std::size_t>(rank)].reason;
    return votes.size() == 1 ? reason : fmt::format("rank {} of the subscriber: {}", rank, reason);
}

}  // namespace

SubscriberState::SubscriberState(std::size_t publishers, Index lease, Standing before, bool in_place)
    : lease_(lease),
      in_place_(in_place),
      publishers_(publishers),
      active_(before.active),
      doubt_(before.doubt),
      floor_(before.floor),
      content_(before.content),
      part_(before.part) {}

void SubscriberState::join(std::uint64_t layouts, Index now) {
    listen(now);
    actions_.emplace_back(Gather{{Question::join, Answer::yes, 0, layouts, standing(), {}}});
}

void SubscriberState::start(bool patient, Index now) {
    if (phase_ == Phase::broken) return finish(0, failure_);
    patient_ = patient;
    for (Publisher& one : publishers_) one.spoke = now;
    wait(now);
}

// The program around this reads messages only while it waits or reads, so silence counts from here.
void SubscriberState::listen(Index now) {
    for (Publisher& one : publishers_) one.heard = now;
}

void SubscriberState::wait(Index now) {
    phase_ = Phase::waiting;
    listen(now);
    look();
}

void SubscriberState::give_up() {
    patient_ = false;
    look();
}

// Leaves the wait if there is something to propose: a version, a failure, or that the wait is over.
void SubscriberState::look() {
    if (phase_ == Phase::waiting && (!failure_.empty() || !patient_ || candidate() >= least())) propose();
}

void SubscriberState::propose() {
    phase_ = Phase::proposing;
    const Answer answer = failure_.empty() ? Answer::yes : Answer::failed;
    actions_.emplace_back(Gather{{Question::propose, answer, candidate(), 0, {}, failure_}});
}

void SubscriberState::receive(std::size_t publisher, const Message& it, Index now) {
    Publisher& one = publishers_[publisher];
    if (one.is_lost) return;
    one.heard = one.spoke = now;
    if (it.word == Word::ready || it.word == Word::gone) one.newest = std::max(one.newest, it.version);
    if (it.word == Word::ready) return look();
    if (phase_ != Phase::reading || it.generation != generation_) return;
    if (it.word == Word::gone && one.reading == Reading::asked)
        return fail_reading(Answer::gone, fmt::format("version {} is gone", version_));
    if (it.word != Word::granted || it.version != version_ || one.reading != Reading::asked) return;
    if (content_known_ && it.content != content_)
        return fail_reading(Answer::failed,
                            fmt::format("rank {} of the publisher has other contents for version {} than the ranks "
                                        "before it; one publisher must own an endpoint",
                                        publisher, version_));
    content_ = it.content;
    content_known_ = true;
    if (answer_ != Answer::yes) return;  // the read has failed, and only the reads under way are waited for
    one.reading = Reading::granted;
    actions_.emplace_back(Fetch{publisher, generation_, version_});
}

void SubscriberState::lost(std::size_t publisher, std::string reason) {
    Publisher& one = publishers_[publisher];
    if (std::exchange(one.is_lost, true)) return;
    if (failure_.empty()) failure_ = std::move(reason);
    if (phase_ == Phase::reading && one.reading != Reading::done) return fail_reading(Answer::failed, failure_);
    look();
}

void SubscriberState::fetched(Index generation, std::size_t publisher, std::string failure) {
    if (phase_ != Phase::reading || generation != generation_) return;
    publishers_[publisher].reading = Reading::done;
    if (!failure.empty()) return fail_reading(Answer::failed, std::move(failure));
    if (answer_ != Answer::yes) {
        if (drained()) vote(answer_, 0, reason_);
        return;
    }
    if (std::ranges::any_of(publishers_, [](const Publisher& one) { return one.reading != Reading::done; })) return;
    phase_ = Phase::summing;
    actions_.emplace_back(Sum{generation_});
}

void SubscriberState::summed(Index generation, std::uint64_t content) {
    if (phase_ == Phase::summing && generation == generation_) vote(Answer::yes, content, {});
}

void SubscriberState::fail_reading(Answer answer, std::string reason) {
    if (answer_ != Answer::failed) {
        answer_ = answer;
        reason_ = std::move(reason);
    }
    if (drained()) vote(answer_, 0, reason_);
}

// True if no copy is under way. Copies write the hidden buffers, so the next read must not begin before.
bool SubscriberState::drained() const {
    return std::ranges::none_of(publishers_, [](const Publisher& one) { return one.reading == Reading::granted; });
}

void SubscriberState::vote(Answer answer, std::uint64_t content, std::string reason) {
    phase_ = Phase::voting;
    answer_ = answer;
    part_ = content;
    if (answer == Answer::yes) doubt_ = version_;  // from here on this rank serves nothing
    actions_.emplace_back(Gather{{Question::activate, answer, version_, content, {}, std::move(reason)}});
}

void SubscriberState::gathered(const std::vector<Vote>& votes, Index now) {
    if (phase_ != Phase::joining && phase_ != Phase::proposing && phase_ != Phase::voting) return;
    const Question mine = phase_ == Phase::joining     ? Question::join
                          : phase_ == Phase::proposing ? Question::propose
                                                       : Question::activate;
    for (std::size_t rank = 0; rank < votes.size(); ++rank)
        if (votes[rank].question != mine)
            return break_off(
                fmt::format("rank {} of the subscriber is in another call; all ranks must make the same "
                            "calls in the same order",
                            rank));
    if (mine == Question::join) after_join(votes);
    if (mine == Question::propose) after_propose(votes, now);
    if (mine == Question::activate) after_activate(votes, now);
}

// The version of the group. A rank that is not in doubt knows the results of all votes, so the highest active version
// is the last result. If all are in doubt, a rank that has died may have served the version in doubt; the digest says
// again whether all have it whole.
void SubscriberState::after_join(const std::vector<Vote>& votes) {
    for (std::size_t rank = 1; rank < votes.size(); ++rank)
        if (votes[rank].content != votes[0].content)
            return break_off(
                fmt::format("ranks 0 and {} of the subscriber name different tensors, layouts or options", rank));
    const Standing& first = votes[0].standing;
    Index common = 0;
    bool all_doubt = first.doubt != 0;
    Digest sum;
    for (const Vote& vote : votes) {
        const Standing& one = vote.standing;
        common = std::max(common, one.active);
        floor_ = std::max({floor_, one.active, one.doubt, one.floor});
        all_doubt = all_doubt && one.doubt == first.doubt && one.content == first.content;
        sum += Digest{one.part, 0};
    }
    if (all_doubt && sum.sum == first.content) common = first.doubt;
    serves_ = common != 0 && std::ranges::all_of(votes, [&](const Vote& vote) {
                  return vote.standing.active == common || vote.standing.doubt == common;
              });
    if (serves_ && doubt_ == common) actions_.emplace_back(Activate{common});
    if (serves_) floor_ = common;
    // A version that not all ranks have is forgotten, so that it may be read again: from now on, `active` is the result
    // of a vote in which this group took part.
    active_ = serves_ ? common : 0;
    doubt_ = 0;
    phase_ = Phase::idle;
    finish(serves_ ? common : 0, {});
}

void SubscriberState::after_propose(const std::vector<Vote>& votes, Index now) {
    if (const auto rank = first_refusal(votes, Answer::failed); rank >= 0) return finish(0, refusal(votes, rank));
    const Index version = std::ranges::min_element(votes, {}, &Vote::version)->version;
    if (version < least()) return finish(0, {});
    read(version, now);
}

void SubscriberState::read(Index version, Index now) {
    phase_ = Phase::reading;
    listen(now);
    version_ = version;
    ++generation_;
    if (in_place_) {
        floor_ = std::max(floor_, active_);
        active_ = 0;
        serves_ = false;
    }
    content_known_ = false;
    answer_ = Answer::yes;
    deadline_ = now + lease_;
    next_want_ = now + lease_ / 4;
    for (std::size_t peer = 0; peer < publishers_.size(); ++peer) {
        publishers_[peer].reading = Reading::asked;
        actions_.emplace_back(Send{peer, {Word::want, generation_, version_, 0}});
    }
    if (!failure_.empty()) fail_reading(Answer::failed, failure_);
}

void SubscriberState::after_activate(const std::vector<Vote>& votes, Index now) {
    end_reading();
    Digest sum;
    for (const Vote& one : votes) sum += Digest{one.content, 0};
    if (const auto rank = first_refusal(votes, Answer::failed); rank >= 0) {
        doubt_ = 0;
        return finish(0, refusal(votes, rank));
    }
    if (first_refusal(votes, Answer::gone) >= 0) {  // try again with a newer version
        doubt_ = 0;
        look_for_silence(now);
        return wait(now);
    }
    doubt_ = 0;
    if (sum.sum != content_)
        return finish(0,
                      fmt::format("the bytes of version {} are not those that the publisher committed: the digest is "
                                  "{:016x}; wanted {:016x}",
                                  version_, sum.sum, content_));
    active_ = floor_ = version_;
    serves_ = true;
    actions_.emplace_back(Activate{version_});
    finish(version_, {});
}

// If a publisher's rank is silent, its newest version here is old, and each try may find it gone at the others. A vote
// may take as long as a lease, without a word from the publisher.
void SubscriberState::look_for_silence(Index now) {
    for (std::size_t peer = 0; peer < publishers_.size(); ++peer)
        if (!publishers_[peer].is_lost && now - publishers_[peer].spoke >= 2 * lease_)
            lost(peer, fmt::format("rank {} of the publisher has been silent for {} ms", peer,
                                   now - publishers_[peer].spoke));
}

void SubscriberState::end_reading() {
    for (std::size_t peer = 0; peer < publishers_.size(); ++peer)
        if (!publishers_[peer].is_lost) actions_.emplace_back(Send{peer, {Word::release, generation_, version_, 0}});
}

void SubscriberState::gather_failed(std::string reason) {
    if (phase_ == Phase::broken) return;
    if ((phase_ == Phase::voting || phase_ == Phase::reading || phase_ == Phase::summing) && drained()) end_reading();
    if (doubt_ != 0)
        reason += fmt::format(
            "; the vote on version {} has no result here, so nothing is served until the ranks join "
            "again",
            doubt_);
    break_off(std::move(reason));
}

void SubscriberState::tick(Index now) {
    const bool in_wait = phase_ == Phase::waiting || phase_ == Phase::reading;
    for (std::size_t peer = 0; in_wait && peer < publishers_.size(); ++peer)
        if (!publishers_[peer].is_lost && now - publishers_[peer].heard >= lease_)
            lost(peer, fmt::format("rank {} of the publisher has been silent for {} ms", peer,
                                   now - publishers_[peer].heard));
    if (phase_ != Phase::reading || answer_ != Answer::yes) return;
    const auto asked = std::ranges::find(publishers_, Reading::asked, &Publisher::reading);
    if (now >= deadline_ && asked != publishers_.end())
        return fail_reading(Answer::failed, fmt::format("rank {} of the publisher does not grant version {}",
                                                        asked - publishers_.begin(), version_));
    if (now < next_want_) return;
    next_want_ = now + lease_ / 4;
    for (std::size_t peer = 0; peer < publishers_.size(); ++peer)
        if (!publishers_[peer].is_lost) actions_.emplace_back(Send{peer, {Word::want, generation_, version_, 0}});
}

Index SubscriberState::next_tick(Index now) const {
    if (phase_ != Phase::waiting && phase_ != Phase::reading) return index_max;
    Index next = phase_ == Phase::reading ? std::min(next_want_, deadline_) : index_max;
    for (const Publisher& one : publishers_)
        if (!one.is_lost) next = std::min(next, one.heard + lease_);
    return std::max(next, now);
}

std::vector<Action> SubscriberState::take() { return std::exchange(actions_, {}); }

void SubscriberState::finish(Index version, std::string reason) {
    if (phase_ != Phase::broken) phase_ = Phase::idle;
    actions_.emplace_back(Finished{version, std::move(reason)});
}

void SubscriberState::break_off(std::string reason) {
    phase_ = Phase::broken;
    failure_ = std::move(reason);
    finish(0, failure_);
}

// The newest version that all publisher's ranks have.
Index SubscriberState::candidate() const {
    const auto least = std::ranges::min_element(publishers_, {}, &Publisher::newest);
    return least == publishers_.end() ? 0 : least->newest;
}

// The least version that an update takes. A group that serves nothing may take a version again.
Index SubscriberState::least() const { return serves_ ? active_ + 1 : std::max<Index>(floor_, 1); }

}  // namespace reshard::live
