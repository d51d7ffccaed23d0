/// \file
/// Programs: tasks that compute and the arrays that move between them, in one schedule. Part of the library
/// reshard_c_files, which reads their lines. docs/programs.md has the fields of a line and the rules of a run.
#ifndef RESHARD_C_PROGRAM_H
#define RESHARD_C_PROGRAM_H

#include "reshard/c/run.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Tasks with their times, the arrays that they use and make, and limits on memory.
typedef struct reshard_program reshard_program;

/// Reads the lines of JSON of a program. Errors, with the number of the line: io (no JSON), syntax, and as the parsers
/// of meshes and layouts.
int reshard_program_parse(const char* lines, reshard_program** program, reshard_error** error);
/// A program by name, such as `1f1b stages=4 microbatches=16 forward=10ms` (`reshard schedule --generate list`).
/// Errors: syntax, usage (a value out of range), overflow.
int reshard_program_generate(const char* words, reshard_program** program, reshard_error** error);
/// The lines that reshard_program_parse reads.
int reshard_program_lines(const reshard_program* program, reshard_text** lines, reshard_error** error);

/// How a program is scheduled.
typedef struct reshard_schedule_options {
    size_t size;                   ///< sizeof(reshard_schedule_options)
    const reshard_options* moves;  ///< of the plan of each move, the machine among them; NULL: the defaults
    int64_t footprint_bytes_max;   ///< that each device may hold; -1: only the limits of the program
    int64_t rounds_max;            ///< of local search; -1: 200,000 for small programs, fewer for large ones
} reshard_schedule_options;

/// The defaults. NULL in place of options means the same.
#define RESHARD_SCHEDULE_OPTIONS_INITIALIZER \
    { sizeof(reshard_schedule_options), NULL, -1, -1 }

/// A schedule that the judge has passed: when each task runs, and each move travels.
typedef struct reshard_scheduled reshard_scheduled;

/// Makes the soonest schedule that the rounds find. The same question has the same answer on every machine. Errors:
/// usage, mismatch, overflow (a program that is not valid); infeasible (no order that was tried keeps the limits); as
/// reshard_plan_make, with the task named.
int reshard_program_schedule(const reshard_program* program, const reshard_schedule_options* options,
                             reshard_scheduled** scheduled, reshard_error** error);
int64_t reshard_scheduled_picoseconds(const reshard_scheduled* scheduled);        ///< its end; -1 for NULL
int64_t reshard_scheduled_bound_picoseconds(const reshard_scheduled* scheduled);  ///< no end is sooner; -1 for NULL
/// Why the search ended: bound (at the bound), exhausted (no order is better), budget; NULL for NULL.
const char* reshard_scheduled_stop(const reshard_scheduled* scheduled);
/// The most bytes that any device holds; -1 for NULL.
int64_t reshard_scheduled_peak_bytes(const reshard_scheduled* scheduled);
/// The lanes and the memory as `reshard schedule` prints them.
int reshard_scheduled_table(const reshard_scheduled* scheduled, reshard_text** text, reshard_error** error);
/// The script of a device as a line of JSON, for a runtime of your own. Errors: usage (a device of no mesh).
int reshard_scheduled_script(const reshard_scheduled* scheduled, int64_t device, reshard_text** text,
                             reshard_error** error);

/// A task that runs on this rank. Tiles are dense and row-major. Valid until the function that got it returns.
typedef struct reshard_task_run {
    size_t size;                ///< sizeof(reshard_task_run)
    const char* name;           ///< of the task
    int64_t rank;               ///< this rank
    int64_t uses;               ///< used arrays, in the order of the task
    const void* const* used;    ///< this rank's tile of each, to read
    const int64_t* used_bytes;  ///< its size; 0 if this rank has none
    int64_t makes;              ///< made arrays, in the order of the task
    void* const* made;          ///< this rank's tile of each, to write
    const int64_t* made_bytes;  ///< its size; 0 if this rank has none
    const void* moves;          ///< for reshard_task_progress
} reshard_task_run;

/// Computes a task on this rank. 0: it succeeded. Any other value ends the run on all ranks, with the value in words.
typedef int (*reshard_compute)(const reshard_task_run* run, void* context);
/// Lets moves go on. A long task calls this every half millisecond or so. It never blocks. Errors: a move
/// failed; then the task returns the code.
int reshard_task_progress(const reshard_task_run* run, reshard_error** error);

/// A schedule that is prepared on one rank. It owns the tiles.
typedef struct reshard_program_runner reshard_program_runner;

/// Collective over all ranks of the backend: device i is rank i. Errors: mismatch (ranks bring different schedules, too
/// few ranks), unsupported (memory that a task takes over only in part), as reshard_executor_make.
int reshard_program_runner_make(reshard_backend* backend, const reshard_scheduled* scheduled,
                                reshard_program_runner** runner, reshard_error** error);
/// This rank's tile of an array that is there from the beginning, or that is kept; NULL and 0 if it has none. Write the
/// former before each run. Errors: usage (an array that is not held between runs, or one that passes the limit beside
/// the kept arrays of the last run).
int reshard_program_runner_tile(reshard_program_runner* runner, const char* array, void** address, int64_t* bytes,
                                reshard_error** error);
/// Frees this rank's tiles that the last run has made and kept. The next run does the same. Errors: usage (NULL).
int reshard_program_runner_free_kept(reshard_program_runner* runner, reshard_error** error);
/// Runs all tasks of this rank by `compute`, and its moves, in the order of the schedule. Collective. Errors: as
/// the task or the move that failed; on other ranks backend, with its words. Then make the runner anew.
int reshard_program_runner_run(reshard_program_runner* runner, reshard_compute compute, void* context,
                               reshard_error** error);
/// The same, but does not wait for the end: tests and waits of the ticket advance the run and call `compute`. One
/// thread can so run all ranks of a local world.
int reshard_program_runner_start(reshard_program_runner* runner, reshard_compute compute, void* context,
                                 reshard_ticket** ticket, reshard_error** error);
/// The program with the times of the last run, to schedule it again. The same on all ranks. Errors: usage before a run
/// has ended well.
int reshard_program_runner_measured(const reshard_program_runner* runner, reshard_program** program,
                                    reshard_error** error);
int64_t reshard_program_runner_most_bytes(const reshard_program_runner* runner);  ///< held at once; -1 for NULL

#ifdef __cplusplus
}
#endif

#endif
