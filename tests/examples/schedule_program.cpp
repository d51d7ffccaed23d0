// For an author of a pipeline runtime: a program by name, its schedule under a limit, and the order.
#include <cstdio>

#include <reshard/program/generate.hpp>
#include <reshard/program/schedule.hpp>

using namespace reshard;

int main() {
    // [README program]
    Program program = generate("1f1b stages=4 microbatches=16 forward=10ms").value();
    ScheduleOptions options;
    options.footprint_bytes_max = Index{256} << 20;
    ScheduleSynthesis made = schedule(program, options).value();
    std::printf("ends at %lld ps, bound %lld ps\n", static_cast<long long>(made.verdict().picoseconds),
                static_cast<long long>(made.lower_bound));
    for (const ScheduledActivity& one : made.schedule().order)
        std::printf("%lld %s\n", static_cast<long long>(one.start),
                    name_of(made.program(), made.schedule(), one).c_str());
    // [README program end]
    return made.stop == ScheduleStop::bound ? 0 : 1;
}
