#include "tests/live/simulated_world.hpp"

namespace reshard::live::test {

void World::commit() {
    if (now_ > end - 100) return;
    const Index version = ++version_;
    const auto ranks = publishers_;
    const std::size_t epoch = publisher_epoch_;
    for (std::size_t p = 0; p < ranks.size(); ++p)
        in(ranks[p], draw(5), [this, ranks, p, version] { stage(ranks[p], p, version); });
    after(20, [this, ranks, version, epoch] { agree(ranks, version, epoch); });
    after(25 + draw(40), [this] { commit(); });
}

void World::stage(const std::shared_ptr<PublisherRank>& rank, std::size_t p, Index version) {
    auto segment = std::make_shared<Segment>();
    if (!rank->spare.empty()) {
        segment = rank->spare.back();
        rank->spare.pop_back();
    }
    rank->segments[version] = segment;
    for (std::size_t k = 0; k < cells; ++k)
        after(draw(5), [segment, version, p, k] { (*segment)[k] = right_cell(version, p, k); });
    after(6, [rank, version] { static_cast<void>(rank->state.stage(version)); });
}

void World::agree(const std::vector<std::shared_ptr<PublisherRank>>& ranks, Index version, std::size_t epoch) {
    if (epoch != publisher_epoch_) return;
    bool all = true;
    for (const auto& one : ranks)
        all = all && one->alive && one->stalled_until <= now_ && one->state.state_of(version) == VersionState::staged;
    const bool torn = all && chance(faults_.kill * 5);
    std::uint64_t content = 0;
    for (std::size_t p = 0; p < ranks.size() && checks_; ++p)
        for (std::size_t k = 0; k < cells; ++k) content = add(content, right_cell(version, p, k));
    for (std::size_t p = 0; p < ranks.size(); ++p)
        in(ranks[p], draw(4), [this, ranks, p, version, content, good = all && !(torn && draw(2) == 0)] {
            if (ranks[p]->state.state_of(version) != VersionState::staged) return;
            if (good)
                ranks[p]->state.ready(version, content);
            else
                ranks[p]->state.unstage(version);
            act(ranks, p);
        });
    if (torn) die(ranks[draw(ranks.size())]);
    if (!all || torn)
        after(draw(100), [this, epoch] {
            if (epoch == publisher_epoch_) restart_publishers();
        });
}

void World::restart_publishers() {
    for (const auto& one : publishers_) die(one);
    ++publisher_epoch_;  // so the deaths start no other job
    for (auto& one : publishers_) one = std::make_shared<PublisherRank>();
    if (draw(4) == 0) version_ = 0;
}

void World::act(const std::vector<std::shared_ptr<PublisherRank>>& ranks, std::size_t p) {
    PublisherRank& rank = *ranks[p];
    for (const Action& action : rank.state.take()) {
        if (const auto* send = std::get_if<Send>(&action)) {
            if (const auto to = connections_.find(send->peer); to != connections_.end())
                to_subscriber(ranks, p, to->second, send->message);
        } else if (const auto* drop = std::get_if<Drop>(&action)) {
            if (drop->reusable) rank.spare.push_back(rank.segments.at(drop->version));
            if (!drop->reusable) ++tally_.lapsed;
            rank.segments.erase(drop->version);
        }
    }
    wake(ranks, p);
}

void World::wake(const std::vector<std::shared_ptr<PublisherRank>>& ranks, std::size_t p) {
    const Index next = std::max(ranks[p]->state.next_tick(), now_ + 1);
    if (next >= std::min(ranks[p]->wakes, end)) return;
    ranks[p]->wakes = next;
    in(ranks[p], static_cast<std::size_t>(next - now_), [this, ranks, p, next] {
        if (ranks[p]->wakes != next) return;
        ranks[p]->wakes = index_max;
        ranks[p]->state.tick(now_);
        act(ranks, p);
    });
}

}  // namespace reshard::live::test
