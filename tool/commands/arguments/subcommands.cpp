// Subcommands whose options are theirs alone.
#include "reshard/files/convert.hpp"
#include "tool/commands/arguments/options.hpp"

namespace reshard::cli {

void add_calibrate(CLI::App& app, Arguments& arguments) {
    CLI::App* command = add_command(app, arguments, cli::calibrate, "calibrate", "measure this machine, for --machine");
    option(*command, "--backend", arguments.backend, "BACKEND",
           "local or mpi; when not given mpi under mpirun, else local");
    option(*command, "--output", arguments.output, "FILE", "write the machine to this file");
    add_rounds(*command, arguments, "timed rounds of every measurement; 7 when not given");
    option(*command, "--disk", arguments.disk, "FOLDER",
           "instead: measure how much the disk of this folder moves at once");
    add_timeout(*command, arguments);
}

void add_translate(CLI::App& app, Arguments& arguments) {
    CLI::App* command = add_command(app, arguments, translate, "translate", "a layout from one notation to another");
    Question& question = arguments.question;
    option(*command, "layout", question.source, "LAYOUT", "the layout to translate")->required();
    option(*command, "--from", question.notation, "NOTATION",
           "how it is written: jax (the default), spec, sdy, hlo or dtensor");
    option(*command, "--to", arguments.to, "NOTATION", "how it is wanted; jax when not given");
    option(*command, "--mesh", question.mesh, "MESH",
           "the mesh, for notations without one; hlo and dtensor need only its sizes");
    option(*command, "--array", question.array, "ARRAY",
           "element type and shape, f32[8,4], for notations without them");
}

void add_inspect(CLI::App& app, Arguments& arguments) {
    CLI::App* command = add_command(app, arguments, inspect, "inspect", "what is in a checkpoint, and in which files");
    CLI::Option* path = option(*command, "path", arguments.from, "PATH", files::paths_in_words());
    CLI::Option* tensor =
        option(*command, "--tensor", arguments.tensor, "NAME", "draw which file holds what of this tensor");
    CLI::Option* rules =
        option(*command, "--rules", arguments.rules, "FILE", "what each rank gets of the tensor by these rules");
    rules->needs(tensor)->excludes("--json");
    option(*command, "--list", arguments.list, "FILE", "in place of a path: lines name dtype[shape], - for stdin")
        ->needs(rules)
        ->excludes(path);
}

void add_convert(CLI::App& app, Arguments& arguments) {
    CLI::App* command =
        add_command(app, arguments, convert, "convert", "rewrite a checkpoint from one sharding to another");
    option(*command, "from", arguments.from, "PATH", files::paths_in_words())->required();
    option(*command, "into", arguments.into, "PATH", "the output; it may not exist yet")->required();
    option(*command, "--rules", arguments.rules, "FILE",
           "lines pattern = layout of the target, and of the source for files of ranks");
    option(*command, "--to", arguments.form, "FORM",
           "the form to write; the end of the name decides when not given: " + files::forms_in_words());
    option(*command, "--chunks", arguments.chunks, "INDICES", "of zarr: indices of a chunk in each dimension, 1,90,180")
        ->delimiter(',')
        ->allow_extra_args(false);
    option(*command, "--shards", arguments.shards, "INDICES", "of zarr: indices of a file of several chunks")
        ->delimiter(',')
        ->allow_extra_args(false);
    option(*command, "--codec", arguments.codec, "CODEC",
           "of zarr: zstd:3, gzip:5, blosc:lz4:5:shuffle or none; as the source has it when not given");
    option(*command, "--list", arguments.list, "FILE",
           "the whole tensors, name dtype[shape], for files of ranks that lack it");
    option(*command, "--cast", arguments.casts, "CAST",
           "an element type for all floating tensors, bf16, or for some, *.norm.*=f32; may be given again")
        ->allow_extra_args(false);
    option(*command, "--memory", arguments.memory, "BYTES", "the most memory of the process; 1GiB when not given");
    option(*command, "--scratch", arguments.scratch, "DIR",
           "a folder for an array between, in two passes, if one pass would read or write much more than twice");
    option(*command, "--granule", arguments.granule, "BYTES", "how much the disk moves at once; 1MiB when not given");
    option(*command, "--file-bytes", arguments.file_bytes, "BYTES", "largest file beside an index; 5GB when not given");
    constexpr Index most = 1024;
    option(*command, "--jobs", arguments.jobs, "THREADS", "threads; as many as processors, at most 8, when not given")
        ->check(CLI::Range(Index{1}, most));
    command->add_flag("--verify", arguments.verify, "read all output again and compare checksums");
    command->add_flag("--resume", arguments.resume, "continue an earlier run of the same command");
    command->add_flag("--dry-run", arguments.dry_run, "only say what would be read and written");
}

void add_schedule(CLI::App& app, Arguments& arguments) {
    CLI::App* command = add_command(app, arguments, cli::schedule, "schedule",
                                    "when each task of a program runs and each move travels, under limits on memory");
    CLI::Option* file = option(*command, "program", arguments.program, "FILE",
                               "tasks and arrays, one line of JSON each (docs/programs.md); or - for stdin");
    option(*command, "--generate", arguments.generate, "PROGRAM",
           "a program by name, '1f1b stages=4 microbatches=16 forward=10ms'; 'list' prints all names")
        ->excludes(file);
    CLI::Option* hlo = option(*command, "--hlo", arguments.hlo, "FILE",
                              "scheduled HLO instead, as XLA dumps it: how far XLA's own order is from the bound")
                           ->excludes(file)
                           ->excludes("--generate");
    option(*command, "--seconds", arguments.seconds, "FILE",
           "JSON with the seconds of instructions by name; all others are estimated on the --machine")
        ->needs(hlo);
    option(*command, "--computation", arguments.computation, "NAME",
           "of the HLO, such as a loop's body; else the entry")
        ->needs(hlo);
    add_table_options(*command, arguments.question);
    option(*command, "--rounds", arguments.search_rounds, "ROUNDS",
           "of the local search; 200000 in small programs when not given, fewer in large ones")
        ->check(CLI::Range(Index{0}, index_max));
    command->add_flag("--print-program", arguments.print_program, "only print the program, as lines of JSON");
    command->add_flag("--svg", arguments.svg, "a drawing instead of text");
    command->add_flag("--trace", arguments.trace, "a trace for Perfetto instead of text");
    command->add_flag("--chain", arguments.chain, "also the chain of activities that ends last");
    option(*command, "--script", arguments.script, "DEVICE",
           "the part of one device as JSON, for runtimes that start tasks and moves themselves")
        ->check(CLI::Range(Index{0}, index_max));
    command->add_flag("--frontier", arguments.frontier, "the end under several limits of memory instead");
    option(*command, "--compare", arguments.compared, "PROGRAM", "which of these ends first: files or programs by name")
        ->expected(2, 64);
}

}  // namespace reshard::cli
