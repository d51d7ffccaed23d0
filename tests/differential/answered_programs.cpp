// answered_programs COUNT [SEED [LEAST MOST]]: random programs of LEAST to MOST activities (2 to 16) with our answers,
// a line of JSON each, for cp_sat.py. Only programs of up to 16 activities are searched completely.
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

constexpr int exact_max = 16;  // activities
constexpr Budget everything{20'000, 2'000'000};
constexpr Budget search_only{20'000, 0};
constexpr Budget long_search{200'000, 0};

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
    const bool small = program.count() <= exact_max;
    const auto searched = best_order(program, small ? search_only : long_search);
    const auto exact = small ? best_order(program, everything) : searched;
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
    const int least = argc > 4 ? std::atoi(argv[3]) : 2;
    const int most = argc > 4 ? std::atoi(argv[4]) : exact_max;
    const int tasks_max = most * 9 / exact_max;  // the others are moves
    int printed = 0;
    for (std::uint64_t k = 0; printed < count; ++k) {
        const Activities program = reshard::test::RandomActivities(first * 65'536 + k).draw(tasks_max);
        if (program.count() < least || program.count() > most) continue;
        print(program);
        ++printed;
    }
    return count > 0 ? 0 : 2;
}
