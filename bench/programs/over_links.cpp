// Programs that run, asleep, in several orders that take turns: programs_over_links MACHINE CONTESTANTS ROUNDS. Run
// under mpirun; bench/programs.py makes the links and reads the output, one line of JSON. A line of CONTESTANTS is HOW
// and the file of a program. HOW is `held` (by hand, senders held), `written` (the program's own order beside its
// moves) or `scheduled`.
#include <fmt/format.h>

#include <fstream>
#include <optional>

#include "bench/overlap/common.hpp"
#include "bench/programs/asleep.hpp"
#include "bench/programs/by_hand.hpp"
#include "bench/programs/contestants.hpp"
#include "reshard/files/program.hpp"
#include "reshard/program/run.hpp"
#include "reshard/program/schedule.hpp"
#include "src/base/try.hpp"
#include "synth/program/expand.hpp"

namespace reshard::program {
namespace {

using overlap::must;

std::string contents(const std::string& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

// The program's own order, with the starts that it gives. A rank starts its activities in the order, so they are
// sorted.
Result<Judged<ProgramSchedule>> as_written(const Program& program, const Options& options) {
    RESHARD_TRY(auto& expanded, expand(program, options));
    Times times(expanded.activities);
    if (!times.of(expanded.activities.written)) return fail(Code::infeasible, "the written order does not fit");
    Order order = expanded.activities.written;
    std::ranges::stable_sort(order, {}, [&](int j) { return times.start()[static_cast<std::size_t>(j)]; });
    if (!times.of(order)) return fail(Code::infeasible, "the written order does not fit");
    ProgramSchedule schedule{std::move(expanded.moves), {}};
    for (const int j : order) {
        const auto number = static_cast<std::size_t>(j);
        const bool is_move = number >= program.tasks.size();
        schedule.order.push_back({is_move, is_move ? number - program.tasks.size() : number, times.start()[number]});
    }
    return judge(program, std::move(schedule), options.machine);
}

class Contestant {
public:
    Contestant(const std::string& how, const std::string& path, const Machine& machine, Backend& backend)
        : how_(how), rank_(backend.rank()) {
        const Program asked = must(files::parse_program(contents(path)));
        ScheduleOptions options;
        options.moves.machine = machine;
        made_ = how == "scheduled" ? Judged<ProgramSchedule>(must(schedule(asked, options)))
                                   : must(as_written(asked, options.moves));
        predicted = made_->verdict().picoseconds;
        if (how == "held") {
            predicted = blocking(must(expand(asked, options.moves)).activities).end;
            by_hand_.emplace(*made_, rank_);
        } else {
            runner_.emplace(must(ProgramRunner::prepare(*made_, machine, backend)));
        }
        moved_ = moved_arrays(asked);
    }

    Index run() {
        if (by_hand_) return by_hand_->run();
        wrong_ = 0;
        must(runner_->run([this](const TaskRun& one) { return sleep(one); }));
        return wrong_;
    }

    // The peak of this rank, as the schedule prints it and as the run held it. By hand nobody counts.
    [[nodiscard]] Index printed_peak() const {
        Index peak = 0;
        for (const PlaceVerdict& place : made_->verdict().places)
            if (place.device <= rank_) peak = place.peak_bytes;
        return by_hand_ ? 0 : peak;
    }
    [[nodiscard]] double move_seconds() const {  // in the last run, in the mean
        if (by_hand_) return 0;
        double sum = 0;
        Index moves = 0;
        for (const Task& task : must(runner_->measured()).tasks)
            for (const ProgramUse& use : task.uses) {
                sum += static_cast<double>(use.move_picoseconds.value_or(0)) * 1e-12;
                moves += use.move_picoseconds ? 1 : 0;
            }
        return sum / static_cast<double>(std::max<Index>(moves, 1));
    }
    [[nodiscard]] Index held() const { return by_hand_ ? 0 : runner_->most_bytes(); }

    Index predicted = 0;  // picoseconds
    std::vector<double> seconds;

private:
    Result<void> sleep(const TaskRun& one) {
        const double begin = MPI_Wtime();
        Result<void> going;
        for (std::size_t u = 0; u < one.uses.size(); ++u)
            if (moved_.contains(one.task.uses[u].array))
                wrong_ += count_wrong(one.task.uses[u].array, one.task.uses[u].layout, rank_, one.uses[u].bytes);
        for (std::size_t m = 0; m < one.makes.size(); ++m)
            if (moved_.contains(one.task.makes[m].name))
                write_values(one.task.makes[m].name, one.task.makes[m].layout, rank_, one.makes[m].bytes);
        sleep_until(begin, one.task.picoseconds, [&] {
            if (going) going = one.progress();
        });
        return going;
    }

    std::string how_;
    Index rank_;
    std::optional<Judged<ProgramSchedule>> made_;
    std::optional<ByHand> by_hand_;
    std::optional<ProgramRunner> runner_;
    std::set<std::string> moved_;
    Index wrong_ = 0;
};

std::vector<Index> of_all_ranks(Index mine, Index ranks) {
    std::vector<Index> all(static_cast<std::size_t>(ranks));
    MPI_Allgather(&mine, 1, MPI_INT64_T, all.data(), 1, MPI_INT64_T, MPI_COMM_WORLD);
    return all;
}

int run(const std::string& machine_path, const std::string& contestants_path, int rounds) {
    const Machine machine = must(parse_machine(contents(machine_path)));
    const auto backend = must(mpi::make_backend(MPI_COMM_WORLD));
    std::vector<std::unique_ptr<Contestant>> contestants;
    std::ifstream lines(contestants_path);
    for (std::string how, path; lines >> how >> path;)
        contestants.push_back(std::make_unique<Contestant>(how, path, machine, *backend));
    Index wrong = 0;
    for (int round = 0; round <= rounds; ++round)  // the first one warms up
        for (const auto& one : contestants) {
            const double seconds = overlap::timed([&] { wrong += one->run(); });
            if (round > 0) one->seconds.push_back(seconds);
        }
    wrong = overlap::sum_of(wrong);
    nlohmann::json found = nlohmann::json::array();
    for (const auto& one : contestants)
        found.push_back({{"seconds", one->seconds},
                         {"seconds_predicted", static_cast<double>(one->predicted) * 1e-12},
                         {"move_seconds", one->move_seconds()},
                         {"bytes_printed", of_all_ranks(one->printed_peak(), backend->size())},
                         {"bytes_held", of_all_ranks(one->held(), backend->size())}});
    if (backend->rank() == 0) std::cout << nlohmann::json{{"wrong", wrong}, {"contestants", found}}.dump() << std::endl;
    return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace reshard::program

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    if (argc != 4) {
        std::cerr << "programs_over_links MACHINE CONTESTANTS ROUNDS\n";
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const int status = reshard::program::run(argv[1], argv[2], std::stoi(argv[3]));
    MPI_Finalize();
    return status;
}
