#include "support/replay.hpp"

#include <algorithm>

namespace reshard::test {

namespace {

std::string counts_fault(const Step& step, Move move, const Delivery& done, const std::vector<Index>& stripes,
                         Index tile) {
    if (step.kind == StepKind::all_reduce) {
        // The schedule is the plain form: every member receives from every other. The Move prices the native collective
        // that the schedule names by its group: a reduce-scatter, then an all-gather.
        move.received = move.sent = tile * (move.group_size - 1);
        move.uniform = false;
    }
    for (std::size_t device = 0; device < done.tiles.size(); ++device) {
        const auto over = [&](const char* what, Index counted, Index promised) {
            return std::string(name(step.kind)) + ": device " + std::to_string(device) + " " + what + " " +
                   std::to_string(counted) + ", promised " + std::to_string(promised);
        };
        if (done.received[device] > move.received) return over("receives", done.received[device], move.received);
        if (move.uniform && done.received[device] != move.received)
            return over("receives (uniform)", done.received[device], move.received);
        if (done.sent[device] > move.sent) return over("sends", done.sent[device], move.sent);
        if (done.peers[device] > move.messages) return over("hears peers", done.peers[device], move.messages);
        if (step.kind == StepKind::exchange && done.sent[device] > stripes[device])
            return over("sends, against its stripe,", done.sent[device], stripes[device]);
    }
    return "";
}

}  // namespace

std::string replay_step(const Layout& before, const Step& step, const Move& move) {
    const bool view = step.kind == StepKind::view;
    const auto wanted = holdings(step.layout);
    const auto held = view ? wanted : holdings(before);
    const auto extents = shape(step.layout);
    const Values array = make_array(extents);
    const Tiles tiles = spread(held, extents, array);
    const std::string kind(name(step.kind));
    if (view && spread(holdings(before), shape(before), array) != tiles) return "a view changes a tile";
    const auto simulated = simulate(before, step, tiles);
    if (!simulated) return kind + " is not simulated: " + simulated.error().message;
    if (const auto wrong = fault(wanted, extents, array, *simulated); !wrong.empty())
        return kind + " simulated: " + wrong;
    const auto schedules = all_schedules(before, step);
    if (const auto judged = check_schedules(before, step, schedules); !judged)
        return kind + " schedules are refused: " + judged.error().message;
    const Delivery done = deliver(held, wanted, schedules, tiles);
    if (!done.fault.empty()) return kind + " delivered: " + done.fault;
    if (const auto wrong = fault(wanted, extents, array, done.tiles); !wrong.empty())
        return kind + " delivered: " + wrong;
    const bool exchange = step.kind == StepKind::exchange;
    return counts_fault(step, move, done, exchange ? stripe_limits(held, wanted) : std::vector<Index>{},
                        largest_tile(held));
}

std::string replay(const Plan& plan, const Verdict& verdict) {
    if (verdict.moves.size() != plan.steps.size()) return "not one move per step";
    const auto held = holdings(plan.source);
    const auto wanted = holdings(plan.target);
    const auto extents = shape(plan.source);
    const Values array = make_array(extents);
    const Tiles start = spread(held, extents, array);
    const auto whole = simulate(plan, start);
    if (!whole) return "the plan is not simulated: " + whole.error().message;
    if (const auto wrong = fault(wanted, extents, array, *whole); !wrong.empty()) return "simulated: " + wrong;
    if (!denotes(plan.target, *whole, array)) return "the simulated plan does not denote its target";
    Tiles tiles = start;
    std::vector<Index> received(held.size(), 0), sent(held.size(), 0);
    Index peak = std::max(largest_tile(held), largest_tile(wanted));
    const Layout* before = &plan.source;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        const Step& step = plan.steps[i];
        const std::string where = "step " + std::to_string(i + 1) + ": ";
        if (const auto wrong = replay_step(*before, step, verdict.moves[i]); !wrong.empty()) return where + wrong;
        if (step.kind == StepKind::view) {
            before = &step.layout;
            continue;
        }
        const auto next = holdings(step.layout);
        const Delivery done = deliver(holdings(*before), next, all_schedules(*before, step), tiles);
        if (!done.fault.empty()) return where + done.fault;
        tiles = done.tiles;
        for (std::size_t device = 0; device < held.size(); ++device) {
            if (step.kind == StepKind::all_reduce) {  // priced as the native collective, see counts_fault
                const Index g = verdict.moves[i].group_size;
                const Index moved = (2 * elements(next[device].tile) * (g - 1) + g - 1) / g;
                received[device] += moved;
                sent[device] += moved;
                continue;
            }
            received[device] += done.received[device];
            sent[device] += done.sent[device];
        }
        peak = std::max(peak, largest_tile(next));
        before = &step.layout;
    }
    if (const auto wrong = fault(wanted, extents, array, tiles); !wrong.empty()) return "delivered: " + wrong;
    const Index bytes = size_of(plan.source.dtype);
    const Index busiest = received.empty() ? 0 : *std::ranges::max_element(received);
    const Index sender = sent.empty() ? 0 : *std::ranges::max_element(sent);
    if (peak * bytes != verdict.peak_bytes) return "the peak is " + std::to_string(peak * bytes);
    if (busiest * bytes > verdict.received_bytes_max_device)
        return "a device receives " + std::to_string(busiest * bytes) + " bytes, promised " +
               std::to_string(verdict.received_bytes_max_device);
    if (verdict.received_bytes_max_device > verdict.received_bytes) return "max over devices exceeds the sum of maxima";
    if (sender * bytes > verdict.sent_bytes_max_device) return "a device sends more than promised";
    if (verdict.received_bytes_max_device < verdict.lower_bound_bytes) return "below the lower bound";
    if (verdict.peak_bytes < verdict.floor_bytes) return "below the floor";
    return "";
}

}  // namespace reshard::test
