#include "synth/program/in_pieces.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "reshard/overlap/choose_pieces.hpp"
#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "src/price/run_times.hpp"
#include "synth/program/times.hpp"

namespace reshard::program {
namespace {

using Offer = std::optional<InPieces>;

std::size_t tasks_of(const Expanded& expanded) { return expanded.activities.all.size() - expanded.moves.size(); }

// The plan that runs in pieces: its steps, or the one exchange that runs instead of them.
Plan plan_in_pieces(const Judged<Plan>& made) {
    if (std::holds_alternative<AsOneExchange>(made.execution()))
        if (auto exchange = as_one_exchange(made.plan())) return std::move(*exchange);
    return made.plan();
}

// The largest blocks along a dimension that the plan can be split in, so that all devices send at once; 0 if it cannot.
Index block_of(const Plan& plan, std::size_t dim) {
    const Index extent = plan.source.dims[dim].extent;
    Index block = extent;
    for (const Layout* const end : {&plan.source, &plan.target}) {
        const Dim& one = end->dims[dim];
        if (divides(one)) block = std::gcd(block, block_extent(one));
    }
    for (const Index tried : {block, extent})
        if (tried > 1 && can_split(plan, even_pieces(dim, tried, 2))) return tried;
    return 0;
}

class Offers {
public:
    Offers(const Program& program, const Expanded& whole, const Machine& machine)
        : program_(program), whole_(whole), machine_(machine) {
        machine_.slowed_percent = 100;  // tasks of programs are not slowed by moves beside them
    }

    Result<Offer> of(std::size_t m) {
        const ProgramMove& move = whole_.moves[m];
        if (move.users.size() != 1 || move.picoseconds == 0) return Offer();
        const Task& task = program_.tasks[move.users.front().task];
        const ProgramUse& use = task.uses[move.users.front().use];
        const auto activity = static_cast<int>(tasks_of(whole_) + m);
        const bool waits_alone = whole_.activities.after[activity].size() == 1 &&
                                 std::ranges::count(task.donates, move.array) == 0;  // it frees the source then
        if (!use.pieces_along || task.picoseconds == 0 || !waits_alone ||
            cards_of(move.plan, machine_, whole_.devices).empty())
            return Offer();
        const Plan& plan = move.plan.plan();
        const auto key = std::tuple(format(plan.source.mesh), format(plan.source), format(plan.target.mesh),
                                    format(plan.target), *use.pieces_along, task.picoseconds, move.picoseconds);
        const auto known = known_.find(key);
        if (known != known_.end()) return known->second;
        RESHARD_TRY(auto& offer, make(move, *use.pieces_along, task.picoseconds, use.move_picoseconds));
        return known_[key] = std::move(offer);
    }

private:
    Result<Offer> make(const ProgramMove& move, std::size_t dim, Index work_time, const std::optional<Index>& stated) {
        const Plan plan = plan_in_pieces(move.plan);
        const Index block = block_of(plan, dim);
        if (block == 0) return Offer();
        RESHARD_TRY(const auto& steps, judge(plan, AsSteps{}, move.plan.limits()));
        const Index price = plan_picoseconds(plan, steps.verdict(), machine_);
        if (price == 0) return Offer();
        // Pieces are chosen at the times of the machine. A stated time of the move stretches them all.
        const double stretched = stated ? static_cast<double>(*stated) / static_cast<double>(price) : 1.0;
        PieceWork work{.dim = dim, .block = block, .steps_overlap = true};
        work.seconds = [&](Index begin, Index end) {
            return static_cast<double>(work_time) * 1e-12 / stretched * static_cast<double>(end - begin) /
                   static_cast<double>(block);
        };
        RESHARD_TRY(const auto& choice, choose_pieces(steps, machine_, work));
        if (!choice.split) return Offer();
        auto cut = judge(plan, *choice.split, move.plan.limits());
        if (!cut) return Offer();  // such as over the limit of a move
        std::vector<Index> arrived =
            arrivals(run_times(plan, *choice.split, cut->verdict(), machine_, true), *choice.split);
        if (stated)
            for (Index& time : arrived) time = scale_up(time, *stated, price);
        const Index wait = least_wait(*choice.split, arrived, work_time);
        if (wait >= move.picoseconds) return Offer();
        return InPieces{std::move(*cut), arrived.back(), arrived.back() - wait};
    }

    // How long after the start of the move the work starts, such that each piece has arrived when the work comes to it.
    static Index least_wait(const Split& split, const std::vector<Index>& arrived, Index work_time) {
        Index wait = 0;
        Index left = split.block;
        for (std::size_t place = 0; place < arrived.size(); ++place) {
            wait = std::max(wait, arrived[place] - (work_time - scale_up(work_time, left, split.block)));
            const std::size_t piece = piece_at(split, place);
            left -= split.ends[piece] - (piece == 0 ? 0 : split.ends[piece - 1]);
        }
        return wait;
    }

    const Program& program_;
    const Expanded& whole_;
    Machine machine_;
    std::map<std::tuple<std::string, std::string, std::string, std::string, std::size_t, Index, Index>, Offer> known_;
};

Index workspace_of(const Judged<Plan>& plan) {
    return plan.verdict().footprint_bytes - tile_bytes(plan.plan().source) - tile_bytes(plan.plan().target);
}

// Only its workspace is a buffer of a move that no activity uses.
void set_workspace(Activities& activities, int move, const std::vector<int>& places, Index bytes) {
    std::erase_if(activities.buffers, [&](const Buffer& one) { return one.maker == move && one.users.empty(); });
    if (bytes == 0) return;
    for (const int place : places) activities.buffers.push_back({place, bytes, move});
}

}  // namespace

Result<std::vector<Offer>> offered_pieces(const Program& program, const Expanded& whole, const Machine& machine) {
    Offers offers(program, whole, machine);
    std::vector<Offer> all;
    for (std::size_t m = 0; m < whole.moves.size(); ++m) {
        RESHARD_TRY(auto& offer, offers.of(m));
        all.push_back(std::move(offer));
    }
    return all;
}

Expanded with_pieces(const Expanded& whole, const std::vector<Offer>& offered, const std::vector<std::size_t>& chosen) {
    Expanded cut = whole;
    for (const std::size_t m : chosen) {
        const InPieces& pieces = *offered[m];
        const std::size_t activity = tasks_of(whole) + m;
        cut.moves[m].plan = pieces.plan;
        cut.moves[m].picoseconds = pieces.picoseconds;
        cut.moves[m].in_pieces = true;
        cut.activities.all[activity].picoseconds = pieces.picoseconds;
        cut.activities.all[activity].early = pieces.early;
        set_workspace(cut.activities, static_cast<int>(activity), whole.places[m], workspace_of(pieces.plan));
    }
    complete(cut.activities);
    return cut;
}

Activities relaxed(const Expanded& whole, const std::vector<Offer>& offered) {
    Activities easy = whole.activities;
    for (std::size_t m = 0; m < offered.size(); ++m) {
        if (!offered[m]) continue;
        const std::size_t activity = tasks_of(whole) + m;
        Activity& move = easy.all[activity];
        // The shorter of both times, with the wait for the first piece.
        const Index wait = offered[m]->picoseconds - offered[m]->early;
        move.picoseconds = std::min(move.picoseconds, offered[m]->picoseconds);
        move.early = std::max<Index>(move.picoseconds - wait, 0);
        set_workspace(easy, static_cast<int>(activity), whole.places[m],
                      std::min(workspace_of(whole.moves[m].plan), workspace_of(offered[m]->plan)));
    }
    complete(easy);
    return easy;
}

std::vector<std::size_t> waited_for(const Expanded& now, const Order& order, const std::vector<Offer>& offered) {
    const Activities& activities = now.activities;
    Times times(activities);
    const auto value = times.of(order);
    if (!value) return {};
    std::map<Index, std::vector<int>> ending;  // activities by their ends
    for (const int j : order) ending[times.end()[j]].push_back(j);
    std::vector<char> in_a_chain(activities.all.size());
    std::vector<int> open;
    const auto add = [&](int j) {
        if (in_a_chain[j] == 0) open.push_back(j);
        in_a_chain[j] = 1;
    };
    const auto add_ending = [&](Index time) {
        const auto found = ending.find(time);
        if (found == ending.end()) return;
        for (const int j : found->second) add(j);
        ending.erase(found);
    };
    add_ending(value->end);
    while (!open.empty()) {
        const int j = open.back();
        open.pop_back();
        for (const int i : activities.all[j].before)
            if (times.end()[i] - activities.all[i].early == times.start()[j]) add(i);
        add_ending(times.start()[j]);
    }
    std::vector<std::size_t> found;
    std::set<std::size_t> users;  // a task has one move in pieces at most
    for (const ProgramMove& move : now.moves)
        if (move.in_pieces) users.insert(move.users.front().task);
    for (std::size_t m = 0; m < now.moves.size(); ++m) {
        const std::size_t activity = tasks_of(now) + m;
        const std::size_t user = now.moves[m].users.front().task;
        if (!offered[m] || now.moves[m].in_pieces || in_a_chain[activity] == 0) continue;
        if (times.end()[activity] == times.start()[user] && users.insert(user).second) found.push_back(m);
    }
    return found;
}

}  // namespace reshard::program
