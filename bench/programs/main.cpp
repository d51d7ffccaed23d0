// Published schedules beside ours, in the model of the planner: program_bench [ROUNDS]. `program_bench sizes` prints
// how long schedules of large programs take, without rounds of local search. A ratio is the end of the base over the
// end of a schedule. The base blocks at each move: 1F1B for a pipeline, and the lock step for a refit, which does
// everything one by one.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>

#include <fmt/format.h>

#include "bench/programs/contestants.hpp"
#include "reshard/program/generate.hpp"
#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "synth/program/expand.hpp"
#include "synth/program/search.hpp"

using namespace reshard;

namespace {

struct Row {
    std::string program;
    std::string base = {};   // another program whose blocking order is the base, or "lock step"
    std::string limit = {};  // bytes of a device
    std::string machine = "laptop";
};

Result<program::Activities> activities(const std::string& text, const Machine& machine) {
    RESHARD_TRY(const Program& program, generate(text));
    Options options;
    options.machine = machine;
    RESHARD_TRY(auto& expanded, program::expand(program, options));
    return std::move(expanded.activities);
}

Result<Index> base_of(const Row& row, const program::Activities& all, const Machine& machine) {
    if (row.base.empty()) return program::blocking(all).end;
    if (row.base != "lock step") {
        RESHARD_TRY(const auto& other, activities(row.base, machine));
        return program::blocking(other).end;
    }
    Index sum = 0;
    for (const program::Activity& one : all.all) sum += one.picoseconds;
    return sum;
}

std::string cell(Index base, const program::Contest& one) {
    const double ratio = static_cast<double>(base) / static_cast<double>(one.end);
    return fmt::format("{:.3f}x, {}", ratio, format_bytes(one.peak));
}

Result<void> print(const Row& row, Index rounds) {
    ScheduleOptions options;
    if (row.machine != "laptop") {
        RESHARD_ASSIGN(options.moves.machine, parse_machine(row.machine));
    }
    options.rounds_max = rounds;
    if (!row.limit.empty()) {
        RESHARD_ASSIGN(options.footprint_bytes_max, parse_bytes(row.limit));
    }
    RESHARD_TRY(const auto& all, activities(row.program, options.moves.machine));
    RESHARD_TRY(const Index base, base_of(row, all, options.moves.machine));
    RESHARD_TRY(const Program& asked, generate(row.program));
    RESHARD_TRY(const auto& made, schedule(asked, options));
    program::Contest ours{made.verdict().picoseconds, 0};
    for (const PlaceVerdict& place : made.verdict().places) ours.peak = std::max(ours.peak, place.peak_bytes);
    fmt::print("| {}{} | {} | {} | {} | {} | {} | {}{} |\n", row.program,
               row.limit.empty() ? "" : ", limit " + row.limit, cell(base, program::blocking(all)),
               cell(base, program::program_order(all, 1)), cell(base, program::program_order(all, 2)),
               cell(base, program::random_moves(all)),
               all.places() == 1 ? cell(base, program::latency_hiding(all)) : "", cell(base, ours),
               made.stop == ScheduleStop::budget ? "" : ", optimal");
    return {};
}

std::vector<Row> rows() {
    const char* const two_levels =
        "machine test\nlevel inside devices 2 message 1us bandwidth 100GB/s\n"
        "level outside devices all message 1us bandwidth 10GB/s\ncopy 1TB/s\n";
    const std::string layers = "zero3 layers=26 devices=64 forward=100ms backward=200ms layer=64MiB move=";
    const std::string parts = "tensor_data layers=12 parts=2 forward=50ms backward=100ms outside=60ms inside=";
    std::vector<Row> all;
    for (const char* const move : {"25ms", "50ms", "100ms", "150ms"}) all.push_back({layers + move, "", "352MiB"});
    for (const char* const move : {"10ms", "25ms", "50ms"}) all.push_back({parts + move, "", "", two_levels});
    for (const int stages : {4, 8})
        for (const char* const move : {"10ms", "25ms", "50ms", "100ms"}) {
            const std::string rest = fmt::format(
                " stages={} microbatches={} message=1B forward=100ms backward=200ms move={}", stages, stages * 4, move);
            all.push_back({fmt::format("1f1b activations={}{}", stages, rest)});
            all.push_back({fmt::format("eager activations={}{}", 2 * stages - 1, rest), "1f1b" + rest});
        }
    for (const char* const move : {"100ms", "200ms"})
        all.push_back({fmt::format("refit hold=2 pack=100ms load=100ms move={}", move), "lock step"});
    all.push_back(
        {"coupled a=100ms b=100ms uneven=40ms move=40ms", "coupled a=100ms b=100ms uneven=40ms move=40ms lag=0"});
    return all;
}

double milliseconds_of(const std::function<void()>& body) {
    const std::clock_t begin = std::clock();
    body();
    return 1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

// Processor time, the best of three.
Result<void> print_size(const std::string& text) {
    ScheduleOptions options;
    options.rounds_max = 0;
    RESHARD_TRY(const Program& asked, generate(text));
    RESHARD_TRY(const auto& all, activities(text, options.moves.machine));
    RESHARD_TRY(const auto& made, schedule(asked, options));
    double search = 1e9;
    double whole = 1e9;
    for (int turn = 0; turn < 3; ++turn) {
        search = std::min(search, milliseconds_of([&] { (void)program::best_order(all, {0, 0}); }));
        whole = std::min(whole, milliseconds_of([&] { (void)schedule(asked, options); }));
    }
    const auto over = [&](Index end) { return static_cast<double>(end) / static_cast<double>(made.lower_bound); };
    fmt::print("| {} | {} | {:.1f} | {:.1f} | {:.3f} | {:.3f} |\n", text, all.count(), search, whole,
               over(made.written_picoseconds), over(made.verdict().picoseconds));
    return {};
}

int print_sizes() {
    fmt::print(
        "| program | activities | order (ms) | plans, order and judge (ms) | written order over the bound | ours |\n"
        "|---|---|---|---|---|---|\n");
    const std::string pipeline = " forward=10ms backward=20ms move=10ms";
    for (const std::string& text :
         {"eager stages=4 microbatches=32 activations=7" + pipeline,
          "eager stages=8 microbatches=64 activations=15" + pipeline,
          "eager stages=8 microbatches=640 activations=15" + pipeline, std::string("zero3 layers=34 move=10ms"),
          std::string("zero3 layers=340 move=10ms"), std::string("zero3 layers=3400 move=10ms")}) {
        const auto printed = print_size(text);
        if (printed) continue;
        std::fprintf(stderr, "%s: %s\n", text.c_str(), describe(printed.error()).c_str());
        return 1;
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc > 1 && std::string(argv[1]) == "sizes") return print_sizes();
    const Index rounds = argc > 1 ? std::atoll(argv[1]) : 2000;
    fmt::print(
        "| program | blocking | program order, 1 ahead | 2 ahead | random moves | latency hiding | reshard |\n"
        "|---|---|---|---|---|---|---|\n");
    for (const Row& row : rows()) {
        const auto printed = print(row, rounds);
        if (printed) continue;
        std::fprintf(stderr, "%s: %s\n", row.program.c_str(), describe(printed.error()).c_str());
        return 1;
    }
    return 0;
}
