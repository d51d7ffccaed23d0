// The subcommands. Each prints its answer and returns the exit code, or an error.
#pragma once

#include "tool/commands/arguments.hpp"

namespace reshard::cli {

Result<int> plan(const Arguments& arguments);
Result<int> explain(const Arguments& arguments);
Result<int> draw(const Arguments& arguments);
Result<int> run(const Arguments& arguments);
Result<int> bench(const Arguments& arguments);
Result<int> calibrate(const Arguments& arguments);
Result<int> translate(const Arguments& arguments);
Result<int> emit(const Arguments& arguments);
Result<int> schedule(const Arguments& arguments);

/// `plan --list` and `run --list`: the problems of a file, planned and moved together under one limit.
Result<int> plan_list(const Arguments& arguments);
Result<int> run_list(const Arguments& arguments);

/// `plan` and `explain`, `draw`, `run` and `bench` of a target with halos (asks_for_halos).
Result<int> plan_halos(const Arguments& arguments);
Result<int> draw_halos(const Arguments& arguments);
Result<int> run_halos(const Arguments& arguments);
Result<int> bench_halos(const Arguments& arguments);

/// `explain --log`: the complaints of XLA in a training log.
Result<int> explain_log(const Arguments& arguments);

/// `plan --lost`: the traffic of a rebuild of one array or of a list when devices are lost.
Result<int> plan_rebuild(const Arguments& arguments);

/// `plan --rows`: the exchange of an array, of a list or of a model as rows of bytes, into files.
Result<int> plan_rows(const Arguments& arguments);

/// Checkpoints on disk: what is in one, and one made of another.
Result<int> inspect(const Arguments& arguments);
Result<int> convert(const Arguments& arguments);

/// Versions of a checkpoint from one job to another.
Result<int> live_publish(const Arguments& arguments);
Result<int> live_subscribe(const Arguments& arguments);
Result<int> live_status(const Arguments& arguments);

/// `plan --batch`: one problem a line on stdin, one answer a line on stdout, in the same order.
int batch();

}  // namespace reshard::cli
