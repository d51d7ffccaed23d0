#include "tests/live/simulated_world.hpp"

namespace reshard::live::test {

void World::to_subscriber(const std::vector<std::shared_ptr<PublisherRank>>& ranks, std::size_t p, const Shared& to,
                          const Message& message) {
    if (message.word == Word::gone) ++tally_.gone;
    std::shared_ptr<Segment> segment;  // a grant passes the memory along
    if (message.word == Word::granted) segment = ranks[p]->segments.at(message.version);
    carry([&](std::size_t wait) {
        in(to, wait, [this, p, to, message, segment] {
            if (to->cut.contains(p)) return;
            if (segment) granted_[{to->connection, p, message.version}] = segment;
            to->state.receive(p, message, now_);
            act(to);
        });
    });
}

void World::to_publisher(const Shared& from, std::size_t p, const Message& message) {
    const auto ranks = from->publishers;
    if (from->cut.contains(p)) return;
    carry([&](std::size_t wait) {
        in(ranks[p], wait, [this, ranks, p, from, message] {
            if (from->cut.contains(p)) return;
            ranks[p]->state.receive(from->connection, message, now_);
            act(ranks, p);
        });
    });
}

void World::join(Group& group) {
    if (now_ >= end - 60) return;
    ++group.epoch;
    group.broken = false;
    group.rounds.clear();
    group.seen *=
        std::ranges::any_of(group.ranks,
                            [&](const Shared& one) { return survives(one) && one->state.standing() != Standing{}; })
            ? 1
            : 0;
    for (auto& rank : group.ranks) {
        const bool kept = survives(rank);
        const Standing before = kept ? rank->state.standing() : Standing{};
        auto next = std::make_shared<SubscriberRank>(publishers_.size(), before, group.in_place);
        if (kept) {
            next->visible = rank->visible;
            next->hidden = rank->hidden;
            next->seen = rank->seen;
            if (before.doubt != 0) ++tally_.doubts;
        }
        if (rank) close(rank);
        rank = next;
    }
    for (const Shared& rank : group.ranks) {
        rank->connection = ++last_connection_;
        connections_[rank->connection] = rank;
        rank->publishers = publishers_;
        for (std::size_t p = 0; p < publishers_.size(); ++p) {
            if (!publishers_[p]->alive) {
                in(rank, draw(4), [this, rank, p] { rank->state.lost(p, "dead"), act(rank); });
                continue;
            }
            publishers_[p]->state.join(rank->connection, now_);
            act(publishers_, p);
        }
        begin(rank);
        rank->state.join(7, now_);
        act(rank);
    }
}

void World::begin(const Shared& rank) {
    rank->started = now_;
    rank->updating = true;
    rank->excused = rank->stalled_until > now_;
}

void World::close(const Shared& rank) {
    rank->alive = false;
    connections_.erase(rank->connection);
    for (std::size_t p = 0; p < rank->publishers.size(); ++p)
        in(rank->publishers[p], draw(5), [this, p, ranks = rank->publishers, number = rank->connection] {
            ranks[p]->state.leave(number);
            act(ranks, p);
        });
}

Group& World::group_of(const Shared& rank) {
    return *std::ranges::find_if(groups_, [&](const Group& one) { return std::ranges::count(one.ranks, rank) > 0; });
}

void World::act(const Shared& rank) {
    for (const Action& action : rank->state.take()) {
        if (const auto* send = std::get_if<Send>(&action)) to_publisher(rank, send->peer, send->message);
        if (const auto* fetch = std::get_if<Fetch>(&action)) copy(rank, *fetch);
        if (const auto* gather = std::get_if<Gather>(&action)) vote(rank, gather->vote);
        if (std::get_if<Activate>(&action) != nullptr) std::swap(rank->visible, rank->filled());
        if (const auto* sum = std::get_if<Sum>(&action)) {
            std::uint64_t content = 0;
            for (const auto& [place, value] : rank->filled()) content = checks_ ? add(content, value) : 0;
            in(rank, draw(4), [this, rank, content, generation = sum->generation] {
                rank->state.summed(generation, content);
                act(rank);
            });
        }
        if (const auto* finished = std::get_if<Finished>(&action)) finish(rank, *finished);
    }
    wake(rank);
}

void World::wake(const Shared& rank) {
    const Index next = std::max(rank->state.next_tick(now_), now_ + 1);
    if (next >= std::min(rank->wakes, end + 5 * lease)) return;
    rank->wakes = next;
    in(rank, static_cast<std::size_t>(next - now_), [this, rank, next] {
        if (rank->wakes != next) return;
        rank->wakes = index_max;
        rank->state.tick(now_);
        act(rank);
    });
}

void World::copy(const Shared& rank, const Fetch& fetch) {
    const Group& group = group_of(rank);
    const auto r = static_cast<std::size_t>(std::ranges::find(group.ranks, rank) - group.ranks.begin());
    const auto segment = granted_.at({rank->connection, fetch.peer, fetch.version});
    copy_from(rank, fetch, segment, r, group.ranks.size());
}

void World::copy_from(const Shared& rank, const Fetch& fetch, const std::shared_ptr<Segment>& segment, std::size_t k,
                      std::size_t step) {
    in(rank, draw(5), [this, rank, fetch, segment, k, step] {
        if (k >= cells) {
            rank->state.fetched(fetch.generation, fetch.peer, chance(faults_.kill) ? "cut off" : "");
            return act(rank);
        }
        const bool wrong = checks_ && chance(faults_.corrupt);
        if (wrong) ++tally_.corrupted;
        rank->filled()[{fetch.peer, k}] = wrong ? draw(Digest::prime) : (*segment)[k];
        copy_from(rank, fetch, segment, k + step, step);
    });
}

void World::finish(const Shared& rank, const Finished& finished) {
    rank->updating = false;
    if (!finished.reason.empty())
        tally_.errors += now_ < end ? 1 : 0;  // at the end some ranks stop before others
    else if (finished.version == 0)
        ++tally_.nothing;
    else
        ++tally_.updates;
    Group& group = group_of(rank);
    const bool again = !finished.reason.empty();
    if (again && group.epoch > 0 && rank == group.ranks[0]) {
        after(30 + draw(40), [this, &group, epoch = group.epoch] {
            if (epoch == group.epoch) join(group);
        });
        return;
    }
    if (again || now_ > end - 60) return;
    in(rank, 1 + draw(8), [this, rank] {
        if (rank->updating) return;
        begin(rank);
        const bool patient = true;
        rank->state.start(patient, now_);
        act(rank);
        in(rank, patience, [this, rank, started = rank->started] {
            if (!rank->updating || rank->started != started) return;
            rank->state.give_up();
            act(rank);
        });
    });
}

void World::vote(const Shared& rank, const Vote& vote) {
    Group& group = group_of(rank);
    const auto r = static_cast<std::size_t>(std::ranges::find(group.ranks, rank) - group.ranks.begin());
    const std::size_t number = rank->rounds++;
    if (group.rounds.size() <= number) group.rounds.resize(number + 1);
    if (group.rounds[number].votes.empty()) {
        group.rounds[number].votes.resize(group.ranks.size());
        after(lease, [this, &group, number, epoch = group.epoch] {
            if (group.epoch == epoch && !group.rounds[number].over) fail_all(group);
        });
    }
    if (group.broken) return fail_one(rank);
    after(draw(4), [this, &group, number, r, vote, epoch = group.epoch] {
        if (group.epoch != epoch || group.broken) return;
        Round& round = group.rounds[number];
        round.votes[r] = vote;
        if (std::ranges::all_of(round.votes, [](const auto& one) { return one.has_value(); })) deliver(group, round);
    });
}

void World::deliver(Group& group, Round& round) {
    round.over = true;
    std::vector<Vote> votes;
    for (const auto& one : round.votes) votes.push_back(*one);
    const std::size_t reached = chance(faults_.kill * 3) ? draw(group.ranks.size() + 1) : group.ranks.size();
    for (std::size_t r = 0; r < reached; ++r)
        in(group.ranks[r], draw(4), [this, rank = group.ranks[r], votes] {
            rank->state.gathered(votes, now_);
            act(rank);
        });
    if (reached == group.ranks.size()) return;
    if (draw(2) == 0) die(group.ranks[0]);
    fail_all(group);
}

void World::fail_one(const Shared& rank) {
    in(rank, 1 + draw(5), [this, rank] {
        rank->state.gather_failed("a rank of the subscriber is lost");
        act(rank);
    });
}

void World::fail_all(Group& group) {
    if (group.broken) return;
    group.broken = true;
    for (Round& round : group.rounds) round.over = true;
    for (const Shared& rank : group.ranks) fail_one(rank);
    after(60 + draw(60), [this, &group, epoch = group.epoch] {
        if (epoch == group.epoch) join(group);
    });
}

}  // namespace reshard::live::test
