// Programs of tasks and moves, as lines of JSON.
#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <iterator>

#include "python/bindings/convert.hpp"
#include "python/bindings/core.hpp"
#include "reshard/files/program.hpp"
#include "reshard/program/generate.hpp"
#include "reshard/program/hlo.hpp"

namespace reshard::python {
namespace {

using namespace nb::literals;

#ifdef RESHARD_PYTHON_FILES
void add_lines(Program& program, std::string_view lines) {
    auto more = unwrap(files::parse_program(lines));
    const auto append = [](auto& into, auto& from) { std::ranges::move(from, std::back_inserter(into)); };
    append(program.arrays, more.arrays);
    append(program.tasks, more.tasks);
    append(program.limits, more.limits);
}
void add_one(Program& program, std::string_view line) { unwrap(files::add_line(program, line)); }
std::string lines_of(const Program& program) { return files::format(program); }
#else
[[noreturn]] void no_lines() {
    raise({Code::unsupported, "this build of reshard has no files, and programs are lines of JSON"});
}
void add_lines(Program&, std::string_view) { no_lines(); }
void add_one(Program&, std::string_view) { no_lines(); }
std::string lines_of(const Program&) { no_lines(); }
#endif

// XLA's order of the instructions of a module. The machine estimates times that `seconds` does not give.
nb::tuple program_of_text(std::string_view text, const nb::object& seconds, const nb::object& machine,
                          std::string_view computation) {
    const HloTimes asked = [&](const HloInstruction& one) {
        return picoseconds_of(one, nb::cast<double>(nb::float_(seconds(one))));
    };
    const ScheduledHlo made =
        unwrap(program_of_hlo(text, seconds.is_none() ? hlo_times_on(machine_of(machine)) : asked, computation));
    return nb::make_tuple(shown(lines_of(made.program)), seconds_of(made.xla_picoseconds), made.hidden, made.blocking);
}

void add_hlo(nb::module_& module) {
    nb::class_<HloInstruction>(module, "HloInstruction",
                               "An instruction of scheduled HLO that takes time. Bytes are of one device.")
        .def_ro("name", &HloInstruction::name, "As XLA names it.")
        .def_ro("opcode", &HloInstruction::opcode, "As XLA writes it: fusion, all-gather-start.")
        .def_ro("collective", &HloInstruction::collective,
                "Its kind, such as all-gather, also if it is started asynchronously. Empty if it is none.")
        .def_ro("bytes", &HloInstruction::bytes, "Of its result; if it starts a collective, of the result of its done.")
        .def_ro("read_bytes", &HloInstruction::read_bytes, "Of its operands.")
        .def_ro("op", &HloInstruction::op, "JAX's name of it; empty if XLA has lost it.")
        .def_ro("devices", &HloInstruction::devices, "Of a collective: the devices of its first group.")
        .def("__repr__",
             [](const HloInstruction& one) { return fmt::format("<HloInstruction {} ({})>", one.name, one.opcode); });
    module.def("program_of_hlo", program_of_text, "text"_a, "seconds"_a.none(), "machine"_a.none(), "computation"_a,
               "The lines of the program, the seconds of XLA's order, its pairs of start and done, and its collectives "
               "without.");
}

}  // namespace

void add_programs(nb::module_& module) {
    nb::class_<Program>(module, "ProgramLines", "A program as lines of JSON. reshard.Program adds tasks by arguments.")
        .def(
            "__init__",
            [](Program* self, std::string_view lines) {
                Program program;
                if (!lines.empty()) add_lines(program, lines);
                new (self) Program(std::move(program));
            },
            "lines"_a = "")
        .def("add_lines", add_lines, "lines"_a,
             "Adds lines of JSON, each a task, an array or a limit. If one is wrong, nothing is added.\n\n"
             "Errors: InputError, with the number of the line.")
        .def("add_line", add_one, "line"_a, "Adds one line. Errors: InputError.")
        .def_prop_ro(
            "task_names",
            [](const Program& program) {
                std::vector<std::string> names;
                for (const Task& task : program.tasks) names.push_back(task.name);
                return names;
            },
            nb::sig("def task_names(self, /) -> list[str]"), "The name of each task, in the written order.")
        .def("__len__", [](const Program& program) { return program.tasks.size(); })
        .def("__str__", [](const Program& program) { return shown(lines_of(program)); })
        .def("__repr__",
             [](const Program& program) { return fmt::format("<Program of {} tasks>", program.tasks.size()); })
        .def("__eq__",
             [](const Program& a, nb::handle b) { return is_instance<Program>(b) && a == *nb::inst_ptr<Program>(b); });
    add_hlo(module);
    module.def(
        "generated_lines", [](std::string_view text) { return lines_of(unwrap(generate(text))); }, "text"_a,
        "The lines of a program by name.");
    nb::dict all;
    for (const Generator& one : generators()) all[text_of(one.name)] = text_of(one.about);
    module.attr("program_generators") = all;
}

}  // namespace reshard::python
