// The command line as a value.
#pragma once

#include <optional>
#include <string>

#include "tool/request/request.hpp"

namespace CLI {
class App;
}

namespace reshard::cli {

struct Arguments {
    Result<int> (*command)(const Arguments&) = nullptr;  ///< one of commands.hpp
    Question question;
    bool json = false;
    bool batch = false;          ///< plan: problems on stdin, one a line
    std::string list;            ///< plan, run: a file of problems that are moved together; none when empty
    std::string staging;         ///< plan, run: how much of a list's limit is kept free for the backend
    std::string rules;           ///< plan: a file with the layouts of the tensors of a list; none when empty
    std::vector<Index> lost;     ///< plan: devices whose tiles are gone; a rebuild is planned if there are any
    std::string rows;            ///< plan: a folder for the rows of every rank; none when empty
    std::string side;            ///< plan: whose rows, send or receive; send when empty
    std::string source_storage;  ///< plan --rows: where source tiles lie; dense, row-major when empty
    std::string target_storage;  ///< plan --rows: the same of target tiles
    bool nested = false;         ///< plan --rows: rows with nested loops
    bool certify = false;        ///< plan: ask the proved checker as well
    std::string checker;         ///< plan: that checker, found by itself when empty
    bool times = false;          ///< explain: how long each rule took
    bool adjoint = false;        ///< explain: also the adjoint of the plan
    std::string log;             ///< explain: a training log whose complaints are explained; none when empty
    std::optional<double> waste_max = {};  ///< explain --log: fail if XLA receives more than so many times the bytes
    bool svg = false;                      ///< draw, schedule
    /// local, mpi or nccl. plan, explain, draw: the backend of the plan, empty for any. run, bench: empty to
    /// choose by how the tool was started.
    std::string backend;
    Index ranks_per_node =
        0;                ///< plan, explain, draw, run, bench: mpi: ranks of a node; 0: all, or as found (run, bench)
    Index timeout = 300;  ///< run, bench, calibrate: seconds that a rank waits for another, under MPI
    std::string input;    ///< run: an npy file, generated data when empty
    std::string output;   ///< run: an npy file; calibrate: a machine file; none when empty
    std::string tiles;    ///< run: a folder, none when empty
    std::string dtype;    ///< run: the type of the raw elements of the input
    std::string to;       ///< translate: the notation to write; emit: the framework
    Index rounds = 7;     ///< bench, calibrate
    std::string from;     ///< convert, inspect: a checkpoint
    std::string into;     ///< convert: the output
    std::string form;     ///< convert: a files::Form; chosen by the name when empty
    std::string memory;   ///< convert: bytes; 1GiB when empty
    std::string granule;  ///< convert: bytes; 1MiB when empty
    std::string disk;     ///< calibrate: a folder of it
    std::string file_bytes;                   ///< convert: most bytes of a file; 5GB when empty
    std::vector<std::string> casts;           ///< convert: DTYPE or PATTERN=DTYPE
    std::string tensor;                       ///< inspect: this one
    Index jobs = 0;                           ///< convert: threads, 0 for as many as processors
    std::vector<Index> chunks;                ///< convert: of zarr, per dimension
    std::vector<Index> shards;                ///< convert: of zarr, per dimension
    std::string codec;                        ///< convert: of zarr; as the source when empty
    std::string scratch;                      ///< convert: a folder for an intermediate file; none when empty
    bool verify = false;                      ///< convert
    bool resume = false;                      ///< convert
    bool dry_run = false;                     ///< convert
    std::string program;                      ///< schedule: a file of JSON lines, - for stdin; none when empty
    std::string generate;                     ///< schedule: a program by name instead
    std::optional<Index> search_rounds = {};  ///< schedule: of the local search
    bool print_program = false;               ///< schedule: only the program, as JSON lines
    bool trace = false;                       ///< schedule: for Perfetto
    bool chain = false;                       ///< schedule: what the end waits for
    bool frontier = false;                    ///< schedule: the end under several limits
    std::optional<Index> script = {};         ///< schedule: the device whose part is printed
    std::string endpoint;                     ///< live: of the publisher
    Index version = 1;                        ///< live publish: the number of the checkpoint
    bool watch = false;                       ///< live publish: offer the checkpoints that come later, too
    Index readers = 0;                        ///< live publish: end after so many reads; 0: until a signal
    std::string transport = "auto";           ///< live publish: auto, tcp or ucx
    bool follow = false;                      ///< live subscribe: go on with newer versions
    Index patience = 300;                     ///< live: seconds of a wait
    std::string hlo;                          ///< schedule: a file of scheduled HLO instead
    std::string seconds;                      ///< schedule: a file of the seconds of its instructions
    std::string computation;                  ///< schedule: of the module; empty: the entry
    std::vector<std::string> compared;        ///< schedule: programs that are compared, files or by name
};

/// The question of the command line, for the backend that it names. Errors: as understand; usage.
[[nodiscard]] Result<Request> request_for(const Arguments& arguments);

/// Completes the help of the program and of every subcommand that it has by now: examples and exit codes.
void complete_help(CLI::App& app);

/// nullopt when help or the version was asked for and has been printed. Errors: usage.
[[nodiscard]] Result<std::optional<Arguments>> parse_arguments(int argc, char** argv);

}  // namespace reshard::cli
