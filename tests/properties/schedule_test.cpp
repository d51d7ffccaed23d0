// The judge of schedules refuses every damage that would change the result.
#include <algorithm>
#include <map>

#include "support/generators.hpp"
#include "support/property.hpp"
#include "support/replay.hpp"

namespace reshard::test {
namespace {

struct Case {
    Layout before;
    Step step;
    std::vector<Schedule> schedules;
};

/// A step of any kind, typed by construction, with its schedules.
Case draw_case() {
    const StepKind kind = kinds_of_one_shape[*between<std::size_t>(0, kinds_of_one_shape.size())];
    const Pair pair = *typed_pairs(kind);
    RC_LOG() << repeat_line(pair) << " as " << name(kind);
    Case drawn{layout_of(pair.source), {kind, layout_of(pair.target)}, {}};
    drawn.schedules = all_schedules(drawn.before, drawn.step);
    return drawn;
}

/// A rank for which `wanted` holds, if there is one.
template <class Wanted>
Schedule* some_rank(std::vector<Schedule>& schedules, Wanted wanted) {
    std::vector<Schedule*> fit;
    for (Schedule& schedule : schedules)
        if (wanted(schedule)) fit.push_back(&schedule);
    return fit.empty() ? nullptr : fit[*between<std::size_t>(0, fit.size())];
}

/// Damages one thing in one schedule. False if this step has no place for the damage.
bool damage(std::vector<Schedule>& schedules, std::string& what) {
    const auto has_sends = [](const Schedule& schedule) { return !schedule.sends.empty(); };
    const auto has_receives = [](const Schedule& schedule) { return !schedule.receives.empty(); };
    const int which = *between(0, 7);
    Schedule* rank = some_rank(schedules, has_receives);
    if (which <= 1) rank = some_rank(schedules, has_sends);
    if (rank == nullptr) return false;
    auto& list = which <= 1 ? rank->sends : rank->receives;
    const auto at = static_cast<std::ptrdiff_t>(*between<std::size_t>(0, list.size()));
    Transfer& transfer = list[static_cast<std::size_t>(at)];
    switch (which) {
        case 0:
            what = "a send is dropped";
            list.erase(list.begin() + at);
            return true;
        case 1:
            what = "a send goes to another rank";
            transfer.peer = (transfer.peer + 1) % static_cast<Index>(schedules.size());
            return schedules.size() > 1;
        case 2:
            what = "a receive is dropped";
            list.erase(list.begin() + at);
            return true;
        case 3:
            what = "a receive is doubled";
            list.push_back(Transfer(transfer));
            return true;
        case 4: {
            what = "a received box is shifted";
            if (transfer.box.empty()) return false;
            Interval& side = transfer.box[*between<std::size_t>(0, transfer.box.size())];
            ++side.begin;
            ++side.end;
            return true;
        }
        case 5: {
            what = "a received box is shortened";
            if (transfer.box.empty()) return false;
            --transfer.box[*between<std::size_t>(0, transfer.box.size())].end;
            return true;
        }
        default: {
            what = "a local copy is taken from a rank that does not send it";
            transfer.peer = (transfer.peer + 1) % static_cast<Index>(schedules.size());
            return schedules.size() > 1;
        }
    }
}

TEST(ScheduleProperty, SoundSchedulesPassAndDamagedOnesAreRefused) {
    std::map<std::string, int> met;
    check_property(cases(3000), [&] {
        Case drawn = draw_case();
        RC_ASSERT(check_schedules(drawn.before, drawn.step, drawn.schedules).has_value());
        std::string what;
        if (!damage(drawn.schedules, what)) return;
        RC_LOG() << what;
        ++met[what];
        const auto verdict = check_schedules(drawn.before, drawn.step, drawn.schedules);
        RC_ASSERT(!verdict.has_value());
        RC_ASSERT(verdict.error().code == Code::plan);
        RC_ASSERT(!verdict.error().message.empty());
    });
    EXPECT_EQ(met.size(), 7U);
    for (const auto& [what, times] : met) EXPECT_GE(times, cases(3000) / 100) << what;
}

/// Both ends agree on a wrong holder. Only the judge can find this, because it knows what each rank holds.
TEST(ScheduleProperty, AnExchangeFromARankThatDoesNotHoldTheBoxIsRefused) {
    int met = 0;
    check_property(cases(1500), [&] {
        const Pair pair = *typed_pairs(StepKind::exchange);
        const Layout before = layout_of(pair.source);
        const Step step{StepKind::exchange, layout_of(pair.target)};
        auto schedules = all_schedules(before, step);
        const auto held = holdings(pair.source);
        Schedule* receiver = some_rank(schedules, [](const Schedule& schedule) {
            return std::ranges::any_of(schedule.receives, [&](const Transfer& t) { return t.peer != schedule.rank; });
        });
        if (receiver == nullptr) return;
        const auto receive =
            std::ranges::find_if(receiver->receives, [&](const Transfer& t) { return t.peer != receiver->rank; });
        const Index other = *between<Index>(0, static_cast<Index>(schedules.size()));
        if (other == receiver->rank ||
            overlap(held[static_cast<std::size_t>(other)].tile, receive->box) == elements(receive->box))
            return;
        auto& sends = schedules[static_cast<std::size_t>(receive->peer)].sends;
        const auto send = std::ranges::find(sends, Transfer{receiver->rank, receive->box});
        RC_ASSERT(send != sends.end());
        schedules[static_cast<std::size_t>(other)].sends.push_back(*send);
        sends.erase(send);
        receive->peer = other;
        ++met;
        RC_LOG() << repeat_line(pair) << " from rank " << other;
        RC_ASSERT(!check_schedules(before, step, schedules).has_value());
    });
    EXPECT_GE(met, cases(1500) / 20);
}

TEST(ScheduleProperty, SchedulesOfAnotherStepAreRefused) {
    int met = 0;
    check_property(cases(500), [&] {
        const Pair pair = *pairs({.sums = false, .devices_max = 48});
        const Layout before = layout_of(pair.source);
        const Layout after = layout_of(pair.target);
        const Layout other = layout_of(*rc::gen::element(pair.source, pair.target));
        if (equivalent(before, after) || holdings(other) == holdings(after) ||
            !type_step(before, {StepKind::exchange, after}))
            return;
        // `other` is the source, so no rank moves anything. This is right only if no rank lacks anything.
        if (most_foreign(holdings(before), holdings(after)) == 0) return;
        ++met;
        auto schedules = all_schedules(before, {StepKind::exchange, after});
        for (Schedule& schedule : schedules) schedule.sends.clear();
        RC_ASSERT(!check_schedules(before, {StepKind::exchange, after}, schedules).has_value());
        schedules.pop_back();
        RC_ASSERT(!check_schedules(before, {StepKind::exchange, after}, schedules).has_value());
    });
    EXPECT_GE(met, cases(500) / 20);
}

TEST(ScheduleProperty, RanksBeyondTheLayoutHaveNothingToDo) {
    check_property(cases(300), [] {
        const Case drawn = draw_case();
        const Schedule beyond = schedule(drawn.before, drawn.step, device_count(drawn.before) + *between<Index>(0, 9));
        RC_ASSERT(beyond.sends.empty());
        RC_ASSERT(beyond.receives.empty());
        RC_ASSERT(beyond.fills.empty());
    });
}

}  // namespace
}  // namespace reshard::test
