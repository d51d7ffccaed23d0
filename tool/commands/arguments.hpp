// The command line as a value.
#pragma once

#include <optional>
#include <string>

#include "tool/request/request.hpp"

namespace reshard::cli {

enum class Command { plan, explain, draw, run, bench, calibrate, translate };

struct Arguments {
    Command command = Command::plan;
    Question question;
    bool json = false;
    bool batch = false;    ///< plan: problems on stdin, one a line
    std::string list;      ///< plan, run: a file of problems that are moved together; none when empty
    std::string staging;   ///< plan, run: of a list's limit, what is kept free for the backend
    bool certify = false;  ///< plan: ask the proved checker as well
    std::string checker;   ///< plan: that checker, found by itself when empty
    bool svg = false;      ///< draw
    std::string backend;   ///< run, bench: local, mpi or nccl; empty to choose by how the tool was started
    Index timeout = 300;   ///< run, bench, calibrate: seconds that a rank waits for another, under MPI
    std::string input;     ///< run: an npy file, generated data when empty
    std::string output;    ///< run: an npy file; calibrate: a machine file; none when empty
    std::string tiles;     ///< run: a folder, none when empty
    std::string dtype;     ///< run: what the raw elements of the input are
    std::string to;        ///< translate: the notation to write
    Index rounds = 7;      ///< bench, calibrate
};

/// nullopt when help or the version was asked for and has been printed. Errors: usage.
[[nodiscard]] Result<std::optional<Arguments>> parse_arguments(int argc, char** argv);

}  // namespace reshard::cli
