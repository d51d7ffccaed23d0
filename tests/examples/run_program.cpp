// Runs a refit under MPI: ranks 0 and 1 pack weights in rows, ranks 2 and 3 load them in columns.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "reshard/backends/mpi.hpp"
#include "reshard/program/run.hpp"
#include "reshard/program/schedule.hpp"
#include "reshard/text.hpp"

using namespace reshard;

namespace {

Program refit() {
    const Mesh trainer = parse_mesh("t=2[0,1]").value();
    const Mesh engine = parse_mesh("r=2[2,3]").value();
    const Layout rows = parse_layout(trainer, "f32[512@t,256]").value();
    const Layout columns = parse_layout(engine, "f32[512,256@r]").value();
    Program program;
    for (const char* const name : {"0", "1", "2", "3"})
        program.tasks.push_back(
            {std::string("pack") + name, trainer, 1'000'000, {}, {{std::string("w") + name, rows}}});
    for (const char* const name : {"0", "1", "2", "3"})
        program.tasks.push_back({std::string("load") + name, engine, 1'000'000, {{std::string("w") + name, columns}}});
    return program;
}

double loaded = 0;

// Pack writes ones; load adds up what it gets.
Result<void> compute(const TaskRun& run) {
    if (run.task.name.starts_with("pack")) {
        auto* const values = reinterpret_cast<float*>(run.makes[0].bytes.data());
        std::fill_n(values, run.makes[0].bytes.size() / sizeof(float), 1.0F);
    } else {
        const auto* const values = reinterpret_cast<const float*>(run.uses[0].bytes.data());
        loaded = std::accumulate(values, values + run.uses[0].bytes.size() / sizeof(float), loaded);
    }
    return {};
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    {
        // [README run]
        ScheduleOptions options;
        options.footprint_bytes_max = Index{1} << 20;
        const ScheduleSynthesis made = schedule(refit(), options).value();
        const std::unique_ptr<Backend> backend = mpi::make_backend(MPI_COMM_WORLD).value();
        ProgramRunner runner = ProgramRunner::prepare(made, options.moves.machine, *backend).value();
        const Result<void> done = runner.run(compute);  // Result<void> compute(const TaskRun&)
        if (!done) std::printf("%s\n", done.error().message.c_str());
        const Program measured = runner.measured().value();  // with the seconds of this run
        // [README run end]
        if (backend->rank() == 2) std::printf("loaded %.0f, %zu tasks measured\n", loaded, measured.tasks.size());
    }
    MPI_Finalize();
}
