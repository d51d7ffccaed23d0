#include "live/protocol/publisher_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "src/base/try.hpp"

namespace reshard::live {

std::string_view name(VersionState state) {
    switch (state) {
        case VersionState::staged:
            return "staged";
        case VersionState::ready:
            return "ready";
        case VersionState::active:
            return "active";
        case VersionState::releasing:
            return "releasing";
        case VersionState::none:
            break;
    }
    return "none";
}

Result<void> PublisherState::stage(Index version) {
    if (version <= last_staged_)
        return fail(Code::usage, fmt::format("version {} is committed after version {}; versions must grow from 1 on",
                                             version, last_staged_));
    if (staged_ != 0) unstage(staged_);
    staged_ = last_staged_ = version;
    kept_[version] = {};
    return {};
}

void PublisherState::ready(Index version, std::uint64_t content) {
    kept_.at(version).content = content;
    before_ = std::exchange(newest_, version);
    staged_ = 0;
    for (const auto& [number, one] : subscribers_) say(number, {Word::ready, 0, newest_, 0});
    drop_unneeded();
}

void PublisherState::unstage(Index version) {
    kept_.erase(version);
    staged_ = 0;
    actions_.emplace_back(Drop{version, true});  // nobody was told of it
}

void PublisherState::join(std::size_t subscriber, Index now) {
    subscribers_[subscriber] = {};
    next_sign_ = std::min(next_sign_, now + lease_ / 4);
    say(subscriber, {Word::ready, 0, newest_, 0});
}

void PublisherState::receive(std::size_t subscriber, const Message& it, Index now) {
    const auto found = subscribers_.find(subscriber);
    if (found == subscribers_.end()) return;
    Subscriber& one = found->second;
    if (it.word == Word::release) {
        if (it.generation < one.generation) return;  // late: a newer generation has begun
        one.generation = it.generation + 1;          // a late want of this generation is stale from now on
        end_lease(one, false);
    } else if (it.word == Word::want) {
        if (it.generation < one.generation) return;
        const auto version = kept_.find(it.version);
        if (version == kept_.end() || it.version == staged_)
            return say(subscriber, {Word::gone, it.generation, newest_, 0});
        // A new generation says that nothing of the one before is read, so its lease ends without a lapse.
        one = {it.generation, it.version, now + lease_};
        say(subscriber, {Word::granted, it.generation, it.version, version->second.content});
        drop_unneeded();
    }
}

void PublisherState::leave(std::size_t subscriber) {
    const auto found = subscribers_.find(subscriber);
    if (found == subscribers_.end()) return;
    // The process may live and read on, if only its connection is cut.
    end_lease(found->second, true);
    subscribers_.erase(found);
    if (subscribers_.empty()) next_sign_ = index_max;
}

void PublisherState::tick(Index now) {
    for (auto& [number, one] : subscribers_)
        if (one.version != 0 && now >= one.expires) end_lease(one, true);
    if (now < next_sign_) return;
    next_sign_ = now + lease_ / 4;
    for (const auto& [number, one] : subscribers_) say(number, {Word::ready, 0, newest_, 0});
}

Index PublisherState::next_tick() const {
    Index next = next_sign_;
    for (const auto& [number, one] : subscribers_)
        if (one.version != 0) next = std::min(next, one.expires);
    return next;
}

std::vector<Action> PublisherState::take() { return std::exchange(actions_, {}); }

VersionState PublisherState::state_of(Index version) const {
    if (!kept_.contains(version)) return VersionState::none;
    if (version == staged_) return VersionState::staged;
    if (readers_of(version) == 0) return VersionState::ready;
    return version == newest_ ? VersionState::active : VersionState::releasing;
}

std::vector<Index> PublisherState::kept() const {
    std::vector<Index> versions;
    for (const auto& [version, one] : kept_) versions.push_back(version);
    return versions;
}

std::size_t PublisherState::reader_count() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(subscribers_, [](const auto& one) { return one.second.version != 0; }));
}

void PublisherState::end_lease(Subscriber& one, bool lapsed) {
    const Index version = std::exchange(one.version, 0);
    if (version == 0) return;
    if (lapsed) kept_.at(version).lapsed = true;
    drop_unneeded();
}

void PublisherState::drop_unneeded() {
    for (auto it = kept_.begin(); it != kept_.end();) {
        const Index version = it->first;
        const bool needed = version == newest_ || version == before_ || version == staged_ || readers_of(version) > 0;
        if (!needed) actions_.emplace_back(Drop{version, !it->second.lapsed});
        it = needed ? std::next(it) : kept_.erase(it);
    }
}

std::size_t PublisherState::readers_of(Index version) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(subscribers_, [&](const auto& one) { return one.second.version == version; }));
}

}  // namespace reshard::live
