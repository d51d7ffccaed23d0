// Programs of the C interface: schedules, scripts, and runs whose tasks are the caller's.
#include "reshard/c/program.h"

#include <algorithm>

#include "bindings/c/answer.hpp"
#include "report/lanes.hpp"
#include "reshard/files/program.hpp"
#include "reshard/program/generate.hpp"
#include "reshard/program/run.hpp"
#include "reshard/program/schedule.hpp"

struct reshard_program final : reshard::c::HandleOf<reshard_program> {
    static constexpr const char* name = "a program";
    explicit reshard_program(reshard::Program of) : program(std::move(of)) {}
    const reshard::Program program;
};

struct reshard_scheduled final : reshard::c::HandleOf<reshard_scheduled> {
    static constexpr const char* name = "a schedule";
    reshard_scheduled(reshard::ScheduleSynthesis of, reshard::Machine on)
        : made(std::move(of)), machine(std::move(on)) {}
    const reshard::ScheduleSynthesis made;
    const reshard::Machine machine;
};

struct reshard_program_runner final : reshard::c::HandleOf<reshard_program_runner> {
    static constexpr const char* name = "a program runner";
    reshard_program_runner(reshard_backend* of, reshard::ProgramRunner own) : backend(of), runner(std::move(own)) {}
    const reshard::c::Ref<reshard_backend> backend;  // goes last
    reshard::ProgramRunner runner;
};

namespace reshard::c {
namespace {

Result<ScheduleOptions> schedule_options_of(const reshard_schedule_options* given) {
    RESHARD_TRY(const auto& asked, structure<reshard_schedule_options>(given, RESHARD_SCHEDULE_OPTIONS_INITIALIZER,
                                                                       "reshard_schedule_options"));
    ScheduleOptions options;
    RESHARD_ASSIGN(options.moves, options_of(asked.moves));
    const auto at_least_none = [](int64_t value, const char* name) -> Result<std::optional<Index>> {
        if (value < -1)
            return fail(Code::usage,
                        std::string("`") + name + "` is " + std::to_string(value) + "; 0 or more are wanted, or -1");
        return value == -1 ? std::nullopt : std::optional<Index>(value);
    };
    RESHARD_ASSIGN(options.footprint_bytes_max, at_least_none(asked.footprint_bytes_max, "footprint_bytes_max"));
    RESHARD_ASSIGN(options.rounds_max, at_least_none(asked.rounds_max, "rounds_max"));
    return options;
}

// The caller's function as a Compute. If it is missing, every task fails, so the other ranks learn of it.
Compute compute_of(reshard_compute function, void* context, Index rank) {
    return [=](const TaskRun& run) -> Result<void> {
        if (function == nullptr) return fail(Code::usage, "a function that computes tasks is needed, NULL was given");
        std::vector<const void*> used;
        std::vector<void*> made;
        std::vector<int64_t> used_bytes, made_bytes;
        for (const ConstElements& tile : run.uses) {
            used.push_back(tile.bytes.data());
            used_bytes.push_back(std::ssize(tile.bytes));
        }
        for (const Elements& tile : run.makes) {
            made.push_back(tile.bytes.data());
            made_bytes.push_back(std::ssize(tile.bytes));
        }
        const reshard_task_run shown{
            sizeof(reshard_task_run), run.task.name.c_str(), rank,        std::ssize(used),  used.data(),
            used_bytes.data(),        std::ssize(made),      made.data(), made_bytes.data(), &run};
        const int code = function(&shown, context);
        if (code == 0) return {};
        return fail(Code::backend, "its function returned " + std::to_string(code));
    };
}

// A function of C's computes a task in one call.
Result<const reshard_scheduled*> without_pieces(const reshard_scheduled* given) {
    for (const ProgramMove& move : given->made.schedule().moves)
        if (move.in_pieces)
            return fail(Code::unsupported, "the schedule has " + move.array +
                                               " in pieces, which the C interface does not run; leave \"pieces\" out");
    return given;
}

}  // namespace
}  // namespace reshard::c

using namespace reshard;
using namespace reshard::c;

extern "C" {

int reshard_program_parse(const char* lines, reshard_program** program, reshard_error** error) {
    return make(program, error, [&]() -> Result<Program> {
        RESHARD_TRY(const std::string_view text, need_text(lines, "lines"));
        return files::parse_program(text);
    });
}

int reshard_program_generate(const char* words, reshard_program** program, reshard_error** error) {
    return make(program, error, [&]() -> Result<Program> {
        RESHARD_TRY(const std::string_view text, need_text(words, "words"));
        return generate(text);
    });
}

int reshard_program_lines(const reshard_program* program, reshard_text** lines, reshard_error** error) {
    return make(lines, program, error, [&](auto& given) { return files::format(given.program); });
}

int reshard_program_schedule(const reshard_program* program, const reshard_schedule_options* options,
                             reshard_scheduled** scheduled, reshard_error** error) {
    return make(scheduled, error, [&]() -> Result<std::unique_ptr<reshard_scheduled>> {
        RESHARD_CHECK(same_version());
        RESHARD_TRY(const auto* const given, need(program));
        RESHARD_TRY(const auto& asked, schedule_options_of(options));
        RESHARD_TRY(auto& made, schedule(given->program, asked));
        return std::make_unique<reshard_scheduled>(std::move(made), asked.moves.machine);
    });
}

int64_t reshard_scheduled_picoseconds(const reshard_scheduled* scheduled) {
    return scheduled == nullptr ? -1 : scheduled->made.verdict().picoseconds;
}
int64_t reshard_scheduled_bound_picoseconds(const reshard_scheduled* scheduled) {
    return scheduled == nullptr ? -1 : scheduled->made.lower_bound;
}
const char* reshard_scheduled_stop(const reshard_scheduled* scheduled) {
    return scheduled == nullptr ? nullptr : name(scheduled->made.stop).data();  // of a literal, which ends in 0
}

int64_t reshard_scheduled_peak_bytes(const reshard_scheduled* scheduled) {
    if (scheduled == nullptr) return -1;
    Index most = 0;
    for (const PlaceVerdict& place : scheduled->made.verdict().places) most = std::max(most, place.peak_bytes);
    return most;
}

int reshard_scheduled_table(const reshard_scheduled* scheduled, reshard_text** text, reshard_error** error) {
    return make(text, scheduled, error, [&](auto& given) {
        return cli::schedule_text(given.made, given.machine, {.width = 120, .colour = false});
    });
}

int reshard_scheduled_script(const reshard_scheduled* scheduled, int64_t device, reshard_text** text,
                             reshard_error** error) {
    return make(text, scheduled, error, [&](auto& given) -> Result<std::string> {
        RESHARD_TRY(const auto& script, script_of(given.made, given.machine, device));
        return files::format(given.made, script);
    });
}

int reshard_task_progress(const reshard_task_run* run, reshard_error** error) {
    return answer(error, [&]() -> Result<void> {
        if (run == nullptr || run->moves == nullptr)
            return fail(Code::usage, "the run of a task is needed, NULL was given");
        return static_cast<const TaskRun*>(run->moves)->progress();
    });
}

int reshard_program_runner_make(reshard_backend* backend, const reshard_scheduled* scheduled,
                                reshard_program_runner** runner, reshard_error** error) {
    return make_together(
        runner, error, [&](const Result<void>& placed) -> Result<std::unique_ptr<reshard_program_runner>> {
            RESHARD_TRY(auto* const rank, need(backend));
            const auto given = placed.and_then([&] { return need(scheduled); }).and_then(without_pieces);
            using Made = Result<Judged<ProgramSchedule>>;
            const Made made = given ? Made((*given)->made) : Made(tl::unexpected(given.error()));
            RESHARD_TRY(auto& prepared,
                        ProgramRunner::prepare(made, given ? (*given)->machine : laptop(), rank->backend));
            return std::make_unique<reshard_program_runner>(rank, std::move(prepared));
        });
}

int reshard_program_runner_tile(reshard_program_runner* runner, const char* array, void** address, int64_t* bytes,
                                reshard_error** error) {
    return answer(error, [&]() -> Result<void> {
        if (address == nullptr || bytes == nullptr) return fail(Code::usage, "there is no place for a tile: NULL");
        *address = nullptr;
        *bytes = 0;
        RESHARD_TRY(auto* const given, need(runner));
        RESHARD_TRY(const std::string_view name, need_text(array, "array"));
        RESHARD_TRY(const Elements tile, given->runner.tile(name));
        *address = tile.bytes.data();
        *bytes = std::ssize(tile.bytes);
        return {};
    });
}

int reshard_program_runner_free_kept(reshard_program_runner* runner, reshard_error** error) {
    return answer(runner, error, [&](auto& given) { given.runner.free_kept(); });
}

int reshard_program_runner_run(reshard_program_runner* runner, reshard_compute compute, void* context,
                               reshard_error** error) {
    reshard_ticket* ticket = nullptr;
    const int code = reshard_program_runner_start(runner, compute, context, &ticket, error);
    if (code != RESHARD_OK) return code;
    const int ended = reshard_ticket_wait(ticket, error);
    reshard_release(ticket);
    return ended;
}

int reshard_program_runner_start(reshard_program_runner* runner, reshard_compute compute, void* context,
                                 reshard_ticket** ticket, reshard_error** error) {
    return make(ticket, runner, error, [&](auto& given) {
        return ticket_of(given, given.runner.start(compute_of(compute, context, given.backend->backend.rank())));
    });
}

int reshard_program_runner_measured(const reshard_program_runner* runner, reshard_program** program,
                                    reshard_error** error) {
    return make(program, runner, error, [&](auto& given) { return given.runner.measured(); });
}

int64_t reshard_program_runner_most_bytes(const reshard_program_runner* runner) {
    return runner == nullptr ? -1 : runner->runner.most_bytes();
}

}  // extern "C"
