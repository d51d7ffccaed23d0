// Programs of tasks and moves, as lines of JSON.
#include <fmt/format.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <iterator>

#include "python/bindings/convert.hpp"
#include "python/bindings/core.hpp"
#include "reshard/files/program.hpp"
#include "reshard/program/generate.hpp"

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
    module.def(
        "generated_lines", [](std::string_view text) { return lines_of(unwrap(generate(text))); }, "text"_a,
        "The lines of a program by name.");
    nb::dict all;
    for (const Generator& one : generators()) all[text_of(one.name)] = text_of(one.about);
    module.attr("program_generators") = all;
}

}  // namespace reshard::python
