// answered_programs COUNT [SEED]: random programs of up to 16 activities with our answers, a line of JSON each, for
// cp_sat.py.
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "synth/program/search.hpp"
#include "unit/program/random_activities.hpp"

namespace {

using reshard::Index;
using reshard::index_max;
using namespace reshard::program;

constexpr int activities_max = 16;
constexpr Budget everything{20'000, 2'000'000};
constexpr Budget search_only{20'000, 0};

void print(const Activities& program) {
    std::vector<std::string> activities;
    for (const Activity& one : program.all)
        activities.push_back(fmt::format("[{},{},{}]", one.picoseconds, one.resources, one.before));
    std::vector<std::string> buffers;
    for (std::size_t b = 0; b < program.buffers.size(); ++b) {
        const Buffer& one = program.buffers[b];
        if (program.limits[static_cast<std::size_t>(one.place)] == index_max) continue;
        buffers.push_back(fmt::format("[{},{},{},{}]", one.place, one.bytes, one.maker, program.waits_for[b]));
    }
    std::vector<std::string> limits;
    for (const Index limit : program.limits) limits.push_back(limit == index_max ? "null" : std::to_string(limit));
    const auto exact = best_order(program, everything);
    const auto searched = best_order(program, search_only);
    fmt::print(R"({{"activities":[{}],"resources":{},"buffers":[{}],"limits":[{}],)", fmt::join(activities, ","),
               program.resources, fmt::join(buffers, ","), fmt::join(limits, ","));
    if (!exact || !searched) {
        fmt::print("\"end\":null}}\n");
    } else {
        fmt::print("\"end\":{},\"bound\":{},\"complete\":{},\"searched\":{}}}\n", exact->found.value.end,
                   exact->bound.end, exact->ended != Ended::budget, searched->found.value.end);
    }
}

}  // namespace

int main(int argc, char** argv) {
    const int count = argc > 1 ? std::atoi(argv[1]) : 0;
    const std::uint64_t first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 20'211'203;
    constexpr int tasks_max = 9;
    int printed = 0;
    for (std::uint64_t k = 0; printed < count; ++k) {
        const Activities program = reshard::test::RandomActivities(first * 65'536 + k).draw(tasks_max);
        if (program.count() > activities_max) continue;
        print(program);
        ++printed;
    }
    return count > 0 ? 0 : 2;
}
