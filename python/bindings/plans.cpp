// Plan, synthesize and explain.
#include "python/bindings/plans.hpp"

#include <fmt/format.h>
#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <set>

#include "python/bindings/core.hpp"
#include "report/explanation.hpp"
#include "report/picture.hpp"
#include "report/plan_table.hpp"
#include "report/steps.hpp"
#include "reshard/planner/part_of_copy.hpp"
#include "reshard/planner/plan_cache.hpp"
#include "reshard/text.hpp"

namespace reshard::python {
namespace {

using namespace nb::literals;

struct PlannedStep {
    std::string kind;
    Layout layout;
    std::string changes;
    Index received_bytes;
    Index sent_bytes;
    Index messages;
    double seconds;
};

struct Explained {
    Planned planned;
};

cli::Page page_of(std::size_t width) { return {.width = width, .colour = false}; }

std::vector<PlannedStep> steps_of(const Planned& planned) {
    const Plan& plan = planned.made.plan();
    std::vector<PlannedStep> steps;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        const Step& step = plan.steps[i];
        const Layout& before = layout_before(plan, i);
        const Move& move = planned.made.verdict().moves[i];
        const Index size = size_of(before.dtype);
        const Index cost = is_part_of_copy(plan, i) ? 0 : step_picoseconds(before, step, move, planned.options.machine);
        steps.push_back({std::string(name(step.kind)), step.layout, cli::changes(before, step),
                         saturating_multiply(move.received, size), saturating_multiply(move.sent, size), move.messages,
                         seconds_of(cost)});
    }
    return steps;
}

std::string table_of(const Planned& planned, std::size_t width) {
    const std::string note = note_on(planned.asked);
    return shown(cli::plan_table(planned.made, planned.options.machine, page_of(width)) +
                 cli::line_on_nodes(planned.made, planned.options) +
                 (note.empty() ? "" : fmt::format("note: {}\n", note)));
}

// Table and picture; of too many devices only the table.
std::string html_of(const Planned& planned) {
    const auto picture = cli::svg_picture(planned.made.plan(), planned.options.machine);
    return preformatted(table_of(planned, 120)) + (picture ? *picture : "");
}

Index nanoseconds_now() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

void add_step(nb::module_& module) {
    nb::class_<PlannedStep>(module, "Step", "One step of a plan. Bytes are of the busiest device.")
        .def_ro("kind", &PlannedStep::kind,
                "slice, all_gather, all_to_all, permute, reduce_scatter, all_reduce, zero_fill, exchange or view.")
        .def_ro("layout", &PlannedStep::layout, "After the step.")
        .def_ro("changes", &PlannedStep::changes, "The change in a few words: dim 0 +y.")
        .def_ro("received_bytes", &PlannedStep::received_bytes, "The most bytes that a device receives from others.")
        .def_ro("sent_bytes", &PlannedStep::sent_bytes, "The most bytes that a device sends to others.")
        .def_ro("messages", &PlannedStep::messages, "The most peers that a device receives from.")
        .def_ro("seconds", &PlannedStep::seconds, "Estimated on the plan's machine.")
        .def("__repr__",
             [](const PlannedStep& step) { return fmt::format("<Step {} to {}>", step.kind, format(step.layout)); });
}

void add_capabilities(nb::module_& module) {
    const Capabilities usual;
    nb::class_<Capabilities>(module, "Capabilities",
                             "The capabilities of a backend, for the planner. reshard.mpi.capabilities(comm) returns "
                             "those of a communicator.")
        .def("__init__",
             [](Capabilities* self
#define RESHARD_CAPABILITY(kind, name, ...) , decltype(Capabilities::name) name
#include "src/tables/capabilities.def"
             ) {
                 new (self) Capabilities{
#define RESHARD_CAPABILITY(kind, name, ...) .name = name,
#include "src/tables/capabilities.def"
                 };
             }
#define RESHARD_CAPABILITY(kind, name, ...) , nb::arg(#name) = usual.name
#include "src/tables/capabilities.def"
             )
#define RESHARD_CAPABILITY(kind, name, initial, about) .def_ro(#name, &Capabilities::name, about)
#include "src/tables/capabilities.def"
        .def("__repr__", [](const Capabilities& can) {
            std::string text;
#define RESHARD_CAPABILITY(kind, name, ...) text += fmt::format(", {}={}", #name, nb::str(nb::cast(can.name)).c_str());
#include "src/tables/capabilities.def"
            return "Capabilities(" + text.substr(2) + ")";
        });
}

// A property of Plan as Python has it.
template <class T>
const T& shown_value(const T& value) {
    return value;
}
std::string shown_value(std::string_view word) { return std::string(word); }
std::string shown_value(const Execution& execution) { return std::string(name(execution)); }

void add_plan(nb::module_& module) {
    nb::class_<Planned> plan(module, "Plan", R"doc(How an array moves, judged, and what it costs. synthesize makes them.

print(plan) is the table of `reshard plan`; a notebook shows table and picture. Bytes are of the busiest device.)doc");
#define RESHARD_SHOWN(slot, c, json, field, kind, value, about)            \
    if constexpr (std::string_view(#field) != "_") {                       \
        plan.def_prop_ro(                                                  \
            #field,                                                        \
            [](const Planned& planned) {                                   \
                [[maybe_unused]] const Synthesis& made = planned.made;     \
                [[maybe_unused]] const Options& options = planned.options; \
                return shown_value(value);                                 \
            },                                                             \
            about);                                                        \
    }
#include "src/tables/verdict.def"
    plan.def_prop_ro(
            "source", [](const Planned& planned) { return planned.asked.source; }, "The layout of the array now.")
        .def_prop_ro(
            "target", [](const Planned& planned) { return planned.asked.target; }, "The wanted layout.")
        .def_prop_ro(
            "note", [](const Planned& planned) { return note_on(planned.asked); },
            "A warning if the question may be misread: a reshape that looks like a transposition. Else empty.")
        .def_prop_ro("steps", steps_of, nb::sig("def steps(self, /) -> list[Step]"),
                     "In order; none when both ends hold the same.")
        .def_prop_ro(
            "ranks", [](const Planned& planned) { return world_size(planned.made.plan()); }, "Ranks that are needed.")
        .def_prop_ro(
            "machine", [](const Planned& planned) { return planned.options.machine; },
            "The machine on which time is estimated.")
        .def_prop_ro(
            "rule", [](const Planned& planned) { return planned.made.rule; }, "The rule that gave the plan.")
        .def_prop_ro(
            "fingerprint",
            [](const Planned& planned) {
                return fingerprint(planned.made.plan(), planned.made.execution(), planned.options.limits.memory);
            },
            "64 bits that ranks compare; equal on every machine.")
        .def_prop_ro(
            "text", [](const Planned& planned) { return format(planned.made.plan()); },
            "The plan as lines that the tool and C++ parse.")
        .def("table", table_of, "width"_a = 120, "The table of `reshard plan`, in lines of at most so many columns.")
        .def(
            "draw",
            [](const Planned& planned, std::size_t width) {
                return shown(cli::text_picture(planned.made.plan(), page_of(width)));
            },
            "width"_a = 120, "The tiles of every device after each step, as text: `reshard draw`.")
        .def(
            "svg",
            [](const Planned& planned) {
                return unwrap(cli::svg_picture(planned.made.plan(), planned.options.machine));
            },
            "The same as an SVG picture, with the time of each step. Errors: UnsupportedError (too many devices to see "
            "any of them).")
        .def("__str__", [](const Planned& planned) { return table_of(planned, 120); })
        .def("__repr__",
             [](const Planned& planned) {
                 return fmt::format("<Plan {} to {}: {}>", format(planned.made.plan().source),
                                    format(planned.made.plan().target), cli::kinds(planned.made.plan()));
             })
        .def("_repr_html_", html_of)
        .def(
            "__eq__",
            [](const Planned& planned, const Planned& other) {
                return planned.made.plan() == other.made.plan() && planned.made.execution() == other.made.execution();
            },
            nb::is_operator(), nb::sig("def __eq__(self, other: object, /) -> bool"))
        .def("__hash__",
             [](const Planned& planned) { return static_cast<Py_hash_t>(fingerprint(planned.made.plan())); });
}

void add_explanation(nb::module_& module) {
    nb::class_<Alternative>(module, "Alternative", "A plan that was considered, and why it lost.")
        .def_prop_ro(
            "rule", [](const Alternative& other) { return other.rule; }, "The rule that proposed it.")
        .def_prop_ro(
            "kinds", [](const Alternative& other) { return cli::kinds(other.plan()); }, "The kinds of its steps.")
        .def_prop_ro(
            "text", [](const Alternative& other) { return format(other.plan()); }, "The plan as lines.")
        .def_prop_ro(
            "lost", [](const Alternative& other) { return other.lost; }, "Why; empty for the winner.")
        .def_prop_ro(
            "seconds", [](const Alternative& other) { return seconds_of(other.picoseconds); }, "Estimated.")
        .def_prop_ro(
            "received_bytes", [](const Alternative& other) { return other.verdict().received_bytes_max_device; },
            "The bytes that the busiest device receives.")
        .def_prop_ro(
            "peak_bytes", [](const Alternative& other) { return other.verdict().peak_bytes; },
            "The largest tile on the way.")
        .def("__repr__", [](const Alternative& other) {
            return fmt::format("<Alternative {}: {}>", other.rule, cli::kinds(other.plan()));
        });
    nb::class_<Explained>(module, "Explanation", "A plan beside all that was considered; print it.")
        .def_prop_ro(
            "plan", [](const Explained& explained) { return explained.planned; }, "The one that was chosen.")
        .def_prop_ro(
            "policy_row", [](const Explained& explained) { return text_of(explained.planned.made.row.name); },
            nb::sig("def policy_row(self, /) -> str"), "The class of the question: one_mesh, pieces, ...")
        .def_prop_ro(
            "alternatives", [](const Explained& explained) { return explained.planned.made.alternatives; },
            nb::sig("def alternatives(self, /) -> list[Alternative]"), "All candidates, the winner first.")
        .def("__str__",
             [](const Explained& explained) {
                 return shown(cli::explanation(explained.planned.made, explained.planned.options, page_of(120)));
             })
        .def("_repr_html_",
             [](const Explained& explained) {
                 return preformatted(cli::explanation(explained.planned.made, explained.planned.options, page_of(120)));
             })
        .def("__repr__", [](const Explained& explained) {
            return fmt::format("<Explanation of {} alternatives>", explained.planned.made.alternatives.size());
        });
}

PlanCache& plans() {
    static auto* const only = new PlanCache;  // threads may ask while the interpreter ends
    return *only;
}

}  // namespace

namespace {

// Reads an option by the type of its field in Options.
std::string word_of(nb::handle given) { return value_of<std::string>(given, "an objective or a vocabulary is a str"); }
void read(nb::handle given, const Mesh*, Objective& into) { into = unwrap(parse_objective(word_of(given))); }
void read(nb::handle given, const Mesh*, Vocabulary& into) { into = unwrap(parse_vocabulary(word_of(given))); }
void read(nb::handle given, const Mesh*, bool& into) { into = value_of<bool>(given, "a flag is True or False"); }
void read(nb::handle given, const Mesh*, std::optional<Index>& into) { into = limit_of(given); }
void read(nb::handle given, const Mesh*, Index& into) { into = bytes_of(given); }
void read(nb::handle given, const Mesh*, Machine& into) { into = machine_of(given); }
void read(nb::handle given, const Mesh*, Capabilities& into) {
    if (!given.is_none()) into = instance_of<Capabilities>(given, "capabilities are Capabilities or None");
}
void read(nb::handle given, const Mesh*, std::vector<std::string>& into) {
    for (nb::handle rule : given) into.push_back(value_of<std::string>(rule, "`disabled_rules` names rules, strs"));
}
void read(nb::handle given, const Mesh* mesh, std::vector<Step>& into) {
    const char* const wanted = "a first step is its kind, a str, and the layout after it, a Layout or its text";
    for (nb::handle step : given) {
        std::pair<std::string, nb::object> kind_and_layout;
        if (!nb::try_cast(step, kind_and_layout)) throw nb::type_error(wanted);
        const auto& [kind, layout] = kind_and_layout;
        Layout after;
        if (!nb::try_cast(layout, after)) {
            if (mesh == nullptr) raise({Code::usage, "the layouts of first steps are Layouts here, not texts"});
            after = unwrap(parse_layout(*mesh, value_of<std::string>(layout, wanted)));
        }
        into.push_back({unwrap(parse_step_kind(kind)), std::move(after)});
    }
}

// The annotation of an option and its default.
std::string hint(bool) { return "bool = False"; }
std::string hint(Index) { return "int | str = 0"; }
std::string hint(const std::optional<Index>&) { return "int | str | None = None"; }
std::string hint(const Machine&) { return "Machine | str | None = None"; }
std::string hint(const Capabilities&) { return "Capabilities | None = None"; }
std::string hint(const std::vector<std::string>&) { return "collections.abc.Sequence[str] = ()"; }
std::string hint(const std::vector<Step>&) { return "collections.abc.Sequence[tuple[str, Layout | str]] = ()"; }
template <class Choice>
requires std::is_enum_v<Choice> std::string hint(Choice usual) { return fmt::format("str = '{}'", name(usual)); }

}  // namespace

Options options_of(const nb::kwargs& given, const Mesh* mesh) {
    Options options;
    std::size_t known = 0;
#define RESHARD_OPTION(kind, name, member, ...)               \
    if (given.contains(#name)) {                              \
        read(nb::object(given[#name]), mesh, options.member); \
        ++known;                                              \
    }
#include "src/tables/options.def"
    if (known < given.size()) {
        static const std::set<std::string_view> names = {
#define RESHARD_OPTION(kind, name, ...) #name,
#include "src/tables/options.def"
        };
        for (const auto& [name, value] : given)
            if (!names.contains(string_of(name)))
                throw nb::type_error(fmt::format("there is no option '{}'", string_of(name)).c_str());
    }
    return options;
}

std::string options_signature() {
    const Options usual;
    std::string text = "*";
#define RESHARD_OPTION(kind, name, member, ...) text += fmt::format(", {}: {}", #name, hint(usual.member));
#include "src/tables/options.def"
    return text;
}

std::string options_words() {
    std::string text = "\n\nBytes are bytes of a device, an int or a text such as '96MiB'.\n";
#define RESHARD_OPTION(kind, name, member, value, about) text += fmt::format("\n{}: {}.", #name, about);
#include "src/tables/options.def"
    return text;
}

void add_plans(nb::module_& module) {
    add_step(module);
    add_capabilities(module);
    add_plan(module);
    add_explanation(module);
    const std::string made =
        fmt::format("def synthesize(source: Layout, target: Layout, {}) -> Plan", options_signature());
    const std::string words =
        fmt::format(R"doc(The cheapest plan found from one layout to another, judged before it is returned.

Same question, same answer on every rank and machine; answers are remembered (the last 1024).{}
Errors: InputError (different arrays, an axis unknown, a first step that is not typed), InfeasibleError (a limit below
what any plan needs; it names the floor). Any number of threads may ask at once; the GIL is not held meanwhile.)doc",
                    options_words());
    module.def(
        "synthesize",
        [](const Layout& source, const Layout& target, const nb::kwargs& given) {
            Options options = options_of(given, &source.mesh);
            auto found = [&] {
                const Unlocked unlocked;
                return plans().synthesize({source, target}, options);
            }();
            return Planned{{source, target}, unwrap(std::move(found)), std::move(options)};
        },
        nb::sig(made.c_str()), words.c_str(), "source"_a, "target"_a, "options"_a);

    const std::string explained = fmt::format(
        "def explain(source: Layout, target: Layout, times: bool = False, {}) -> Explanation", options_signature());
    const std::string explained_words =
        fmt::format(R"doc(The plan beside everything else that was considered, and why each of those lost.

times: also how long each rule took.{}
Errors: as synthesize.)doc",
                    options_words());
    module.def(
        "explain",
        [](const Layout& source, const Layout& target, bool times, const nb::kwargs& given) {
            Options options = options_of(given, &source.mesh);
            options.explain = true;
            if (times) options.clock = nanoseconds_now;
            auto found = [&] {
                const Unlocked unlocked;
                return reshard::synthesize(source, target, options);
            }();
            return Explained{{{source, target}, unwrap(std::move(found)), std::move(options)}};
        },
        nb::sig(explained.c_str()), explained_words.c_str(), "source"_a, "target"_a, "times"_a = false, "options"_a);

    nb::dict all;
    for (const Rule& rule : rules()) all[text_of(rule.name)] = text_of(rule.about);
    module.attr("planning_rules") = all;  // docs/running.md: rules of planning, not of names
}

}  // namespace reshard::python
