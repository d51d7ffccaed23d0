// The price of small moves and their time: plans of one step and of two, given explicitly, on f64[SIDE,SIDE]. All plans
// run in one launch, in turn, round by round. Run it under mpirun on 4, 6 or 8 ranks; it prints a table.
//   small_prices MACHINE [ROUNDS [CALLS [BYTES_MAX]]]      MACHINE is a file from `reshard calibrate`
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "bench/timing.hpp"
#include "reshard/backends/mpi.hpp"
#include "reshard/reshard.hpp"

namespace reshard {
namespace {

using bench::median;
using bench::now;
using bench::require;

struct Words {
    std::string_view name;
    const char* source;  // {0} stands for the side
    std::vector<std::pair<StepKind, const char*>> steps;
};

// On a mesh a x b of all ranks, where b has two.
const std::vector<Words>& all_words() {
    using enum StepKind;
    static const std::vector<Words> all = {
        {"all_to_all over b", "f64[{0}@(a,b),{0}]", {{all_to_all, "f64[{0}@a,{0}@b]"}}},
        {"all_to_all over a, b", "f64[{0}@(a,b),{0}]", {{all_to_all, "f64[{0},{0}@(a,b)]"}}},
        {"exchange", "f64[{0}@(a,b),{0}]", {{exchange, "f64[{0},{0}@(b,a)]"}}},
        {"all_to_all over b, over a",
         "f64[{0}@(a,b),{0}]",
         {{all_to_all, "f64[{0}@a,{0}@b]"}, {all_to_all, "f64[{0},{0}@(b,a)]"}}},
        {"all_gather, slice", "f64[{0}@(a,b),{0}]", {{all_gather, "f64[{0},{0}]"}, {slice, "f64[{0},{0}@(b,a)]"}}},
        {"all_gather over a, b", "f64[{0}@(a,b),{0}]", {{all_gather, "f64[{0},{0}]"}}},
        {"all_gather over b, over a",
         "f64[{0}@(a,b),{0}]",
         {{all_gather, "f64[{0}@a,{0}]"}, {all_gather, "f64[{0},{0}]"}}},
        {"all_reduce", "f64[{0},{0}]{{U:(a,b)}}", {{all_reduce, "f64[{0},{0}]"}}},
        {"reduce_scatter, all_gather",
         "f64[{0},{0}]{{U:(a,b)}}",
         {{reduce_scatter, "f64[{0}@(a,b),{0}]"}, {all_gather, "f64[{0},{0}]"}}},
        {"all_reduce, slice", "f64[{0},{0}]{{U:(a,b)}}", {{all_reduce, "f64[{0},{0}]"}, {slice, "f64[{0}@(a,b),{0}]"}}},
        {"reduce_scatter", "f64[{0},{0}]{{U:(a,b)}}", {{reduce_scatter, "f64[{0}@(a,b),{0}]"}}},
    };
    return all;
}

// The times of all plans in microseconds, at one size.
struct Spent {
    double bytes = 0;  // of a rank's tile of the source
    std::vector<double> measured = {};
    std::vector<double> priced = {};
};

struct Contestant {
    Judged<Plan> plan;
    Executor executor;
    std::unique_ptr<Memory> source, target, workspace;
    std::vector<double> seconds = {};  // a call, by round
};

Judged<Plan> plan_of(const Words& words, const Mesh& mesh, Index side) {
    const auto layout = [&](const char* text) {
        return require(parse_layout(mesh, fmt::format(fmt::runtime(text), side)));
    };
    Plan plan{layout(words.source), layout(words.steps.back().second), {}};
    for (const auto& [kind, after] : words.steps) plan.steps.push_back({kind, layout(after)});
    return require(judge(std::move(plan), AsSteps{}));
}

Spent measure(Backend& backend, const Machine& machine, const Mesh& mesh, Index side, int rounds, int calls) {
    std::vector<Contestant> all;
    for (const Words& words : all_words()) {
        auto plan = plan_of(words, mesh, side);
        auto executor = require(Executor::prepare(plan, backend));
        auto source = require(backend.allocate(executor.plans().front().source_bytes));
        auto target = require(backend.allocate(executor.plans().front().target_bytes));
        auto workspace = require(backend.allocate(executor.workspace_bytes()));
        std::ranges::fill(source->bytes(), std::byte{0});
        all.push_back(
            {std::move(plan), std::move(executor), std::move(source), std::move(target), std::move(workspace)});
    }
    const auto call = [](Contestant& one) {
        require(one.executor.run(Buffers{one.source->bytes(), one.target->bytes(), one.workspace->bytes()}));
    };
    for (int round = 0; round <= rounds; ++round) {
        for (Contestant& one : all) {
            call(one);
            MPI_Barrier(MPI_COMM_WORLD);
            const double begin = now();
            for (int i = 0; i < calls; ++i) call(one);
            double taken = (now() - begin) / calls;
            MPI_Allreduce(MPI_IN_PLACE, &taken, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            if (round > 0) one.seconds.push_back(taken);
        }
    }
    Spent times{static_cast<double>(side * side / world_size(mesh) * 8)};
    for (const Contestant& one : all) {
        times.measured.push_back(1e6 * median(one.seconds));
        times.priced.push_back(1e-6 *
                               static_cast<double>(plan_picoseconds(one.plan.plan(), one.plan.verdict(), machine)));
    }
    return times;
}

void print(const std::vector<Spent>& sizes, int ranks) {
    fmt::print("| ranks | plan | bytes of a rank's tile | us measured | us priced | priced over measured |\n");
    for (const Spent& one : sizes) {
        for (std::size_t i = 0; i < one.measured.size(); ++i)
            fmt::print("| {} | {} | {} | {:.2f} | {:.2f} | {:.2f} |\n", ranks, all_words()[i].name, one.bytes,
                       one.measured[i], one.priced[i], one.priced[i] / one.measured[i]);
    }
}

// The smallest bytes at which the second plan becomes faster, between the two sizes measured. Infinite if it does not.
double crossing(const std::vector<Spent>& sizes, std::vector<double> Spent::*times, std::size_t first,
                std::size_t second) {
    const auto behind = [&](const Spent& one) { return std::log((one.*times)[second] / (one.*times)[first]); };
    for (std::size_t i = 1; i < sizes.size(); ++i) {
        const double before = behind(sizes[i - 1]);
        const double after = behind(sizes[i]);
        if (before > 0 && after <= 0)
            return sizes[i - 1].bytes * std::pow(sizes[i].bytes / sizes[i - 1].bytes, before / (before - after));
    }
    return HUGE_VAL;
}

void print_crossing(const std::vector<Spent>& sizes, std::string_view first, std::string_view second) {
    const auto place = [](std::string_view name) {
        const auto found = std::ranges::find(all_words(), name, &Words::name);
        return static_cast<std::size_t>(found - all_words().begin());
    };
    fmt::print("{} becomes faster than {} at {:.0f} bytes, and is priced so at {:.0f} bytes\n", second, first,
               crossing(sizes, &Spent::measured, place(first), place(second)),
               crossing(sizes, &Spent::priced, place(first), place(second)));
}

}  // namespace
}  // namespace reshard

int main(int argc, char** argv) {
    using namespace reshard;
    MPI_Init(&argc, &argv);
    {
        std::ifstream file(argc > 1 ? argv[1] : "");
        const Machine machine = require(parse_machine(std::string(std::istreambuf_iterator<char>(file), {})));
        const auto number = [&](int place, int otherwise) { return argc > place ? std::atoi(argv[place]) : otherwise; };
        const auto backend = require(mpi::make_backend(MPI_COMM_WORLD));
        int ranks = 0;
        MPI_Comm_size(MPI_COMM_WORLD, &ranks);
        const Mesh mesh{{"a", ranks / 2}, {"b", 2}};
        std::vector<Spent> sizes;
        for (Index side = ranks; side * side / ranks * 8 <= number(4, 65536); side *= 2)
            sizes.push_back(measure(*backend, machine, mesh, side, number(2, 15), number(3, 50)));
        if (backend->rank() == 0) {
            print(sizes, ranks);
            print_crossing(sizes, "all_gather, slice", "all_to_all over b, over a");
            print_crossing(sizes, "exchange", "all_to_all over b, over a");
        }
    }
    MPI_Finalize();
    return 0;
}
