// The subcommands. Each prints its answer and returns the exit code.
#pragma once

#include "tool/commands/arguments.hpp"

namespace reshard::cli {

int plan(const Arguments& arguments);
int explain(const Arguments& arguments);
int draw(const Arguments& arguments);
int run(const Arguments& arguments);
int bench(const Arguments& arguments);
int calibrate(const Arguments& arguments);
int translate(const Arguments& arguments);

/// `plan --list` and `run --list`: the problems of a file, planned and moved together under one limit.
int plan_list(const Arguments& arguments);
int run_list(const Arguments& arguments);

/// `plan --batch`: one problem a line on stdin, one answer a line on stdout, in the same order.
int batch();

}  // namespace reshard::cli
