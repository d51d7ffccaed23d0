// Schedules of programs.
#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "python/bindings/core.hpp"
#include "python/bindings/plans.hpp"
#include "python/bindings/programs/runner.hpp"
#include "report/lanes.hpp"
#include "report/numbers.hpp"
#include "reshard/files/program.hpp"
#include "reshard/program/schedule.hpp"
#include "reshard/text.hpp"

namespace reshard::python {
namespace {

using namespace nb::literals;

struct ShownActivity {
    std::string name;
    bool is_move = false;
    double start = 0;
    double end = 0;
    std::string array = {};
    std::optional<Layout> source = {};
    std::optional<Layout> target = {};
    std::vector<std::string> users = {};
    Index received_bytes = 0;
    std::size_t pieces = 0;
};

struct DeviceMemory {
    Index device = 0;
    std::optional<Index> limit_bytes;
    Index peak_bytes = 0;
    std::vector<std::pair<double, Index>> held;
};

Scheduled scheduled(const Program& program, std::optional<Index> rounds, const nb::kwargs& given) {
    if (rounds && *rounds < 0) raise({Code::usage, fmt::format("rounds is {}; 0 or more are wanted", *rounds)});
    ScheduleOptions options;
    options.moves = options_of(given, nullptr);
    // The limit is of the whole program, not of each move.
    options.footprint_bytes_max = std::exchange(options.moves.limits.memory.footprint_bytes_max, std::nullopt);
    options.rounds_max = rounds;
    auto found = [&, copy = program] {  // another thread may add tasks meanwhile
        const Unlocked unlocked;
        return schedule(copy, options);
    }();
    return {unwrap(std::move(found)), options.moves.machine};
}

std::vector<ShownActivity> order_of(const Scheduled& scheduled) {
    const Program& program = scheduled.made.program();
    const ProgramSchedule& schedule = scheduled.made.schedule();
    std::vector<ShownActivity> order;
    for (const ScheduledActivity& one : schedule.order) {
        ShownActivity shown{name_of(program, schedule, one), one.is_move, seconds_of(one.start),
                            seconds_of(one.start + picoseconds_of(program, schedule, one))};
        if (one.is_move) {
            const ProgramMove& move = schedule.moves[one.number];
            shown.array = move.array;
            shown.source = move.plan.plan().source;
            shown.target = move.plan.plan().target;
            for (const UseNumber& user : move.users) shown.users.push_back(program.tasks[user.task].name);
            shown.received_bytes = move.plan.verdict().received_bytes_max_device;
            const Split* const split = pieces_of(move);
            shown.pieces = split == nullptr ? 1 : split->ends.size();
        }
        order.push_back(std::move(shown));
    }
    return order;
}

std::vector<DeviceMemory> devices_of(const Scheduled& scheduled) {
    std::vector<DeviceMemory> devices;
    for (const PlaceVerdict& place : scheduled.made.verdict().places) {
        DeviceMemory one{place.device, std::nullopt, place.peak_bytes, {}};
        if (place.limit != index_max) one.limit_bytes = place.limit;
        for (const HeldBytes& held : place.held) one.held.emplace_back(seconds_of(held.picoseconds), held.bytes);
        devices.push_back(std::move(one));
    }
    return devices;
}

// The same fields as `reshard schedule --script`.
nb::object script_for(const Scheduled& scheduled, Index device) {
    const DeviceScript script = unwrap(script_of(scheduled.made, scheduled.machine, device));
    return nb::module_::import_("json").attr("loads")(files::format(scheduled.made, script));
}

std::string text_of_lanes(const Scheduled& scheduled, std::size_t width) {
    return shown(cli::schedule_text(scheduled.made, scheduled.machine, {.width = width, .colour = false}));
}

void add_activity(nb::module_& module) {
    nb::class_<ShownActivity>(module, "ScheduledActivity", "A task or a move of a schedule. Times are in seconds.")
        .def_ro("name", &ShownActivity::name, "The name of the task, or the array of the move and where it goes.")
        .def_ro("is_move", &ShownActivity::is_move, "True for a move, false for a task.")
        .def_ro("start", &ShownActivity::start, "After the start of the program.")
        .def_ro("end", &ShownActivity::end, "After the start of the program.")
        .def_ro("array", &ShownActivity::array, "The array that moves. Empty for a task.")
        .def_ro("source", &ShownActivity::source, "The layout that the move starts from. None for a task.")
        .def_ro("target", &ShownActivity::target, "The layout that the move makes. None for a task.")
        .def_ro("users", &ShownActivity::users, "The names of the tasks that use the moved array.")
        .def_ro("received_bytes", &ShownActivity::received_bytes, "The most bytes that a device receives.")
        .def_ro("pieces", &ShownActivity::pieces,
                "How many pieces its user takes as they arrive; 1 if it comes whole. 0 for a task.")
        .def("__repr__", [](const ShownActivity& one) {
            return fmt::format("<{} {} at {:.6g} s>", one.is_move ? "Move" : "Task", one.name, one.start);
        });
    nb::class_<DeviceMemory>(module, "DeviceMemory", "The memory of a device in a schedule.")
        .def_ro("device", &DeviceMemory::device, "Its number: the smallest of all devices that do the same.")
        .def_ro("limit_bytes", &DeviceMemory::limit_bytes, "Its limit, or None.")
        .def_ro("peak_bytes", &DeviceMemory::peak_bytes, "The most that it holds.")
        .def_ro("held", &DeviceMemory::held, "Pairs of seconds and bytes: what it holds from that time on.")
        .def("__repr__", [](const DeviceMemory& one) {
            return fmt::format("<DeviceMemory of device {}: {} bytes>", one.device, one.peak_bytes);
        });
}

void add_schedule(nb::module_& module) {
    nb::class_<Scheduled>(module, "Schedule",
                          R"doc(When each task runs and each array moves, judged. schedule makes them.

print(schedule) is the drawing of `reshard schedule`; a notebook shows a picture. The order is the whole answer: each
device starts its activities in this order, as soon as inputs, cards and memory allow. Then it never deadlocks and passes
no limit, however long tasks turn out to take.)doc")
        .def_prop_ro(
            "seconds", [](const Scheduled& one) { return seconds_of(one.made.verdict().picoseconds); },
            "When the last activity ends.")
        .def_prop_ro(
            "lower_bound_seconds", [](const Scheduled& one) { return seconds_of(one.made.lower_bound); },
            "No schedule within the limits ends sooner.")
        .def_prop_ro(
            "binding", [](const Scheduled& one) { return one.made.binding; },
            "The part that gives the bound: the longest path, an engine, a card, or the memory of a device.")
        .def_prop_ro(
            "stop", [](const Scheduled& one) { return text_of(name(one.made.stop)); },
            nb::sig("def stop(self, /) -> str"), "Why the search ended: bound, exhausted or budget.")
        .def_prop_ro(
            "optimal", [](const Scheduled& one) { return one.made.stop != ScheduleStop::budget; },
            "True if no schedule ends sooner.")
        .def_prop_ro(
            "written_seconds",
            [](const Scheduled& one) -> std::optional<double> {
                if (one.made.written_picoseconds == 0 && one.made.verdict().picoseconds > 0) return std::nullopt;
                return seconds_of(one.made.written_picoseconds);
            },
            "The end of the program's own order. None if that order does not fit.")
        .def_prop_ro("order", order_of, nb::sig("def order(self, /) -> list[ScheduledActivity]"),
                     "Every task and every move once.")
        .def_prop_ro("devices", devices_of, nb::sig("def devices(self, /) -> list[DeviceMemory]"),
                     "The memory of each device, by its number. Devices that do the same are one entry.")
        .def("script", script_for, "device"_a, nb::sig("def script(self, device: int) -> dict[str, typing.Any]"),
             R"doc(The part of one device, for a runtime of your own: the fields of `reshard schedule --script`.

A runtime starts the steps in their order, each when the activities of `after` have ended, the move `beside` it has started
and its memory fits limit_bytes. A move starts when all its devices start it. A task ends after the move `beside` it. Then no device waits for ever. Errors: InputError (a device of no mesh).)doc")
        .def("drawing", text_of_lanes, "width"_a = 120, "The drawing of `reshard schedule`.")
        .def(
            "chain",
            [](const Scheduled& one, std::size_t width) {
                return shown(cli::schedule_chain(one.made, one.machine, {.width = width, .colour = false}));
            },
            "width"_a = 120, "The activities that end last, and what each of them waited for.")
        .def(
            "svg", [](const Scheduled& one) { return cli::schedule_svg(one.made, one.machine); },
            "The lanes as a picture.")
        .def(
            "trace", [](const Scheduled& one) { return cli::schedule_trace(one.made, one.machine); },
            "JSON in Chrome's trace format, which Perfetto reads.")
        .def("__str__", [](const Scheduled& one) { return text_of_lanes(one, 120); })
        .def("__repr__",
             [](const Scheduled& one) {
                 return fmt::format("<Schedule of {} activities in {}>", one.made.schedule().order.size(),
                                    cli::format_picoseconds(one.made.verdict().picoseconds));
             })
        .def("_repr_html_", [](const Scheduled& one) { return cli::schedule_svg(one.made, one.machine); });
}

void add_runner(nb::module_& module) {
    nb::class_<PythonRunner>(module, "ProgramRunner", "A schedule on the ranks of this process. reshard.Runner has it.")
        .def("run", &PythonRunner::run, "fill"_a, "compute"_a)
        .def("kept", &PythonRunner::kept)
        .def("measured", &PythonRunner::measured)
        .def("most_bytes", &PythonRunner::most_bytes)
        .def_prop_ro("ranks", &PythonRunner::ranks);
}

}  // namespace

void add_schedules(nb::module_& module) {
    add_activity(module);
    add_schedule(module);
    add_runner(module);
    const std::string signature = fmt::format(
        "def schedule(program: ProgramLines, rounds: int | None = None, {}) -> Schedule", options_signature());
    const std::string words =
        fmt::format(R"doc(The soonest schedule of a program that a budget finds, judged before it is returned.

Moves are inferred from the layouts. footprint_bytes_max is the most that each device may hold; the other options are of
the plan of each move. rounds: of local search, by default 200,000 for small programs. Same question, same answer on every
machine.{}
Errors: InputError (a name that does not exist, another shape, an array that is donated wrongly), InfeasibleError (no
order that was tried keeps the limits; it says what they need). The GIL is not held meanwhile.)doc",
                    options_words());
    module.def("schedule", scheduled, nb::sig(signature.c_str()), words.c_str(), "program"_a,
               "rounds"_a.none() = nb::none(), "options"_a);
}

}  // namespace reshard::python
