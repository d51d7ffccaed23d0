// Four ranks move an array once with success. Then rank 1 fails in the given way, and the others run again. Each prints
// the result for test_failures.py. An exit ends the job, so a rank leaves a mark in a folder when it has printed
// everything, and waits for the marks of the others.
#include <fmt/format.h>
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "reshard/backends/mpi.hpp"
#include "reshard/execute.hpp"
#include "reshard/text.hpp"

namespace {

using namespace reshard;

constexpr Index failing = 1;

Plan rows_to_columns() {
    const Mesh mesh{{"x", 4}};
    const auto target = parse_layout(mesh, "f32[256,256@x]").value();
    return {parse_layout(mesh, "f32[256@x,256]").value(), target, {{StepKind::exchange, target}}};
}

Plan rows_added_up() {
    const Mesh mesh{{"x", 4}};
    const auto target = parse_layout(mesh, "f32[256,256]").value();
    return {parse_layout(mesh, "f32[256,256]{U:x}").value(), target, {{StepKind::all_reduce, target}}};
}

void say(Index rank, int run, const Result<void>& done) {
    fmt::print("rank {} run {}: {}\n", rank, run, done ? "good" : done.error().message);
    std::fflush(stdout);
}

// After any death, the caller has its memory back with its contents, and no registration is left.
void say_what_is_left(Index rank, std::vector<Registration>& registrations, const std::vector<std::byte>& source) {
    bool well = true;
    for (Registration& one : registrations) well = one.end().has_value() && well;
    well = well && std::ranges::all_of(source, [](std::byte one) { return one == std::byte{7}; });
    std::ifstream maps("/proc/self/maps");
    const std::string own = fmt::format("memfd:reshard.{}.", getpid());
    for (std::string line; std::getline(maps, line);) well = well && line.find(own) == std::string::npos;
    fmt::print("rank {} memory: {}\n", rank, well ? "intact" : "lost, or something is left");
    std::fflush(stdout);
}

int move_and_fail(const std::string& how, const std::string& transport) {
    mpi::Options options;
    options.shared_memory = transport != "messages";
    options.ranks_per_node = transport == "nodes" ? 2 : 0;
    const bool adds = transport.ends_with("sums");
    const bool registered = transport == "registered";
    const bool own_memory = registered || transport == "bounce" || transport == "staged_sums";
    options.timeout = std::chrono::seconds(2);
    auto backend = mpi::make_backend(MPI_COMM_WORLD, options).value();
    auto executor =
        Executor::prepare(judge(adds ? rows_added_up() : rows_to_columns(), backend->capabilities()), *backend).value();
    auto source = backend->allocate(executor.plans().front().source_bytes).value();
    auto target = backend->allocate(executor.plans().front().target_bytes).value();
    std::vector<std::byte> own_source(source->bytes().size());
    std::vector<std::byte> own_target(target->bytes().size());
    std::ranges::fill(own_source, std::byte{7});
    std::vector<Registration> registrations;
    for (const std::span<std::byte> memory : {std::span(own_source), std::span(own_target)}) {
        if (registered) registrations.push_back(backend->register_memory(memory).value());
    }
    const Buffers buffers{own_memory ? own_source : source->bytes(), own_memory ? own_target : target->bytes(), {}};
    const Index rank = backend->rank();
    say(rank, 1, executor.run(buffers.source, buffers.target));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == failing && how == "killed") raise(SIGKILL);
    if (rank == failing && how == "absent") return 0;
    if (rank == failing &&
        how == "lost") {  // a buffer is bound and freed before the run: no rank can map the memory in its place
        auto other = backend->allocate(buffers.target.size()).value();
        const Buffers gone{source->bytes(), other->bytes(), {}};
        auto bound = executor.bind({&gone, 1}).value();
        other.reset();
        const auto larger = backend->allocate(Index{16} << 20).value();  // kept memory that does not fit is released
        auto run = bound->start();
        say(rank, 2, run ? (*run)->wait() : tl::unexpected(run.error()));
        return 0;
    }
    say(rank, 2, executor.run(buffers.source, buffers.target));
    if (registered) say_what_is_left(rank, registrations, own_source);
    return 0;
}

}  // namespace

// failing_rank killed|absent|lost shared|nodes|messages|bounce|sums|staged_sums|registered FOLDER
int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    if (argc < 4) return 2;
    int rank = 0;
    int ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const std::string how = argv[1];
    const std::filesystem::path folder = argv[3];
    const int code = move_and_fail(how, argv[2]);
    std::fflush(stdout);
    const auto mark = [&](int of) { return folder / fmt::format("rank-{}-is-done", of); };
    std::ofstream(mark(rank)).flush();
    for (int other = 0; other < ranks; ++other) {
        while (!(other == failing && how == "killed") && !std::filesystem::exists(mark(other)))
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    _exit(code);  // MPI_Finalize would wait for the dead
}
