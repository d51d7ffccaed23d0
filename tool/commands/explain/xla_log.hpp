// XLA's complaints in a training log: "[SPMD] Involuntary full rematerialization ...", one a line, as XLA has written
// them since 2023, with HloShardings V1 to V3.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reshard/notations/hlo.hpp"
#include "reshard/problem.hpp"

namespace reshard::cli {

/// One array that XLA replicates on its way from one sharding to another.
struct Rematerialization {
    std::string source;     ///< sharding as the log has it
    std::string target;     ///< the same
    std::string operation;  ///< HLO's text of the operation that makes the array; empty if the log lacks it
    std::string place;      ///< file:line, or JAX's name of the operation, or HLO's; empty where the log says none
    Index lines = 1;        ///< how often it stands in the log
    bool named = false;     ///< the shardings have the names of the mesh's axes (V3)
};

/// All in the order of their first line; equal ones once.
[[nodiscard]] std::vector<Rematerialization> rematerializations(std::string_view log);

/// The move that XLA wanted. The log says the tile of the source, which is assumed to divide the array. Errors:
/// unsupported (the line does not say which array it is), and as parse_layout.
[[nodiscard]] Result<Problem> problem_of(const Rematerialization& found);

}  // namespace reshard::cli
