// Subcommands that ask for a plan.
#include <fmt/format.h>

#include <tuple>

#include "tool/commands/arguments/options.hpp"

namespace reshard::cli {

void add_plan_options(CLI::App& plan, Arguments& arguments) {
    CLI::Option* batch =
        plan.add_flag("--batch", arguments.batch, "problems as lines of JSON on stdin, answers as lines of JSON");
    CLI::Option* certify = plan.add_flag("--certify", arguments.certify,
                                         "also judge the plan with the checker that is extracted from the proofs");
    option(plan, "--checker", arguments.checker, "PROGRAM",
           "that checker; when not given the environment's RESHARD_CHECKER, else reshard-checker")
        ->needs(certify);
    add_list(plan, arguments);
    CLI::Option* rows = option(plan, "--rows", arguments.rows, "FOLDER",
                               "write what every rank sends, as rows of bytes, to .npy files in this folder");
    option(plan, "--side", arguments.side, "SIDE", "send (the default) or receive: what each rank receives instead")
        ->needs(rows)
        ->check(CLI::IsMember({"send", "receive"}));
    for (const auto& [name, place, end] : {std::tuple("--source-storage", &arguments.source_storage, "source"),
                                           std::tuple("--target-storage", &arguments.target_storage, "target")})
        option(plan, name, *place, "STORAGE",
               fmt::format(
                   "of the {} tiles: 'order 1,0' (dense, outermost first) or 'strides 8,1 offset 4' in elements", end))
            ->needs(rows)
            ->excludes("--list");
    plan.add_flag("--nested", arguments.nested, "rows of four nested loops: fewer, 17 numbers each")->needs(rows);
    option(plan, "--rules", arguments.rules, "FILE",
           "lines pattern = layout for both ends; the list's lines are then tensors, name dtype[shape]")
        ->needs("--list");
    plan.add_option("--lost", arguments.lost,
                    "devices whose tiles are gone, as in 3,6: what a rebuild from the replicas that are left moves")
        ->type_name("DEVICES")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(CLI::Range(Index{0}, index_max))
        ->excludes(rows)
        ->excludes(batch)
        ->excludes(certify);
    batch->excludes(certify)->excludes("--list");
    plan.get_option("--list")->excludes(certify);
    batch->excludes("--backend");
}

void add_explain_options(CLI::App& explain, Arguments& arguments) {
    explain.add_flag("--times", arguments.times, "also how long each rule took");
    explain.add_flag("--adjoint", arguments.adjoint, "also the way back of a gradient: the adjoint of the plan");
    CLI::Option* log = option(explain, "--log", arguments.log, "FILE",
                              "explain XLA's \"involuntary full rematerialization\" lines of this file");
    option(explain, "--waste-max", arguments.waste_max, "RATIO",
           "fail if XLA receives more than so many times the bytes")
        ->needs(log)
        ->check(CLI::NonNegativeNumber);
}

void add_run_options(CLI::App& run, Arguments& arguments) {
    add_backend(run, arguments, "local, mpi or nccl; mpi under mpirun, else local");
    add_timeout(run, arguments);
    option(run, "--input", arguments.input, "FILE", "read the array from this .npy file");
    option(run, "--output", arguments.output, "FILE", "write the moved array to this .npy file, a pipe or a device");
    option(run, "--tiles", arguments.tiles, "FOLDER",
           "write every rank's tiles to this folder, replacing earlier ones");
    option(run, "--dtype", arguments.dtype, "DTYPE",
           "the element type of the input, if .npy has no name for it: bf16, f8_e4m3fn or f8_e5m2");
    add_list(run, arguments);
    for (const char* const of_one_array : {"--input", "--output", "--tiles", "--dtype"})
        run.get_option("--list")->excludes(of_one_array);
}

void add_emit_options(CLI::App& emit, Arguments& arguments) {
    option(emit, "--to", arguments.to, "FRAMEWORK", "jax, stablehlo, torch or spmd_types")->required();
    emit.get_option("--vocabulary")->description("which steps: collectives (the default); no framework has others");
}

}  // namespace reshard::cli
