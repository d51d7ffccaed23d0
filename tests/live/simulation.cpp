#include "tests/live/simulated_world.hpp"

namespace reshard::live::test {

Tally World::run() {
    checks_ = draw(2) == 0;
    publishers_.resize(1 + draw(3));
    for (auto& one : publishers_) one = std::make_shared<PublisherRank>();
    groups_.resize(1 + draw(2));
    for (Group& group : groups_) {
        group.in_place = draw(2) == 0;
        const std::size_t ranks = 1 + draw(3);
        for (std::size_t r = 0; r < ranks; ++r) group.ranks.push_back(nullptr);
        after(draw(20), [this, &group] { join(group); });
    }
    after(draw(20), [this] { commit(); });
    after(1, [this] { misfortune(); });
    while (!events_.empty() && tally_.fault.empty()) {
        now_ = events_.top().time;
        const auto what = events_.top().what;
        events_.pop();
        what();
        look();
    }
    tally_.committed = version_;
    if (!groups_[0].ranks.empty() && groups_[0].ranks[0]) tally_.served = groups_[0].ranks[0]->state.serving();
    return tally_;
}

void World::in(std::shared_ptr<Process> process, std::size_t wait, std::function<void()> what) {
    after(wait, [this, process, what = std::move(what)] {
        if (!process->alive) return;
        if (process->stalled_until > now_)
            in(process, static_cast<std::size_t>(process->stalled_until - now_), what);
        else
            what();
    });
}

void World::die(const std::shared_ptr<PublisherRank>& rank) {
    if (!std::exchange(rank->alive, false)) return;
    ++tally_.kills;
    const auto p = static_cast<std::size_t>(std::ranges::find(publishers_, rank) - publishers_.begin());
    for (const auto& [number, to] : connections_)
        in(to, draw(5), [this, to = to, p] {
            to->state.lost(p, fmt::format("rank {} of the publisher is dead", p));
            act(to);
        });
    after(50 + draw(100), [this, epoch = publisher_epoch_] {
        if (epoch == publisher_epoch_) restart_publishers();
    });
}

void World::die(const Shared& rank) {
    if (!rank->alive) return;
    ++tally_.kills;
    Group& group = group_of(rank);
    close(rank);
    after(draw(5), [this, &group, epoch = group.epoch] {
        if (epoch == group.epoch) fail_all(group);
    });
}

void World::misfortune() {
    if (now_ >= misfortune_end) return;
    after(1, [this] { misfortune(); });
    Group& group = groups_[draw(groups_.size())];
    const Shared rank = group.ranks[draw(group.ranks.size())];
    const auto publisher = publishers_[draw(publishers_.size())];
    if (chance(faults_.kill)) draw(2) == 0 && rank ? die(rank) : die(publisher);
    if (chance(faults_.stall)) {
        std::shared_ptr<Process> process = publisher;
        if (draw(2) == 0 && rank) {
            process = rank;
            rank->excused = true;
        }
        process->stalled_until = now_ + static_cast<Index>(draw(3 * lease));
    }
    if (chance(faults_.cut) && rank) rank->cut.insert(draw(publishers_.size()));
}

void World::look() {
    for (Group& group : groups_) {
        Index common = 0;
        for (const Shared& rank : group.ranks) {
            if (!rank) continue;
            const Index serving = rank->alive ? rank->state.serving() : 0;
            if (serving != 0) {
                if (common != 0 && serving != common)
                    broken(fmt::format("versions {} and {} at once", common, serving));
                common = serving;
                if (serving < group.seen) broken(fmt::format("version {} after {}", serving, group.seen));
                group.seen = serving;
                for (const auto& [place, value] : rank->visible)
                    if (value != right_cell(serving, place.first, place.second))
                        broken(fmt::format("a cell of version {} is of another version", serving));
            }
            if (rank->alive && rank->updating && !rank->excused && now_ - rank->started > patience + 6 * lease)
                broken(fmt::format("an update takes {} ms", now_ - rank->started));
        }
    }
}

void World::broken(const std::string& what) {
    if (tally_.fault.empty()) tally_.fault = fmt::format("at {} ms: {}", now_, what);
}

Tally simulate(std::uint64_t seed, const Faults& faults) { return World(seed, faults).run(); }

}  // namespace reshard::live::test
