// Plan, synthesize and explain.
#include "python/bindings/plans.hpp"

#include <fmt/format.h>
#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <chrono>

#include "python/bindings/core.hpp"
#include "report/explanation.hpp"
#include "report/picture.hpp"
#include "report/plan_table.hpp"
#include "report/steps.hpp"
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
    const Index size = size_of(plan.source.dtype);
    std::vector<PlannedStep> steps;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        const Step& step = plan.steps[i];
        const Layout& before = layout_before(plan, i);
        const Move& move = planned.made.verdict().moves[i];
        steps.push_back({std::string(name(step.kind)), step.layout, cli::changes(before, step),
                         saturating_multiply(move.received, size), saturating_multiply(move.sent, size), move.messages,
                         seconds_of(step_picoseconds(before, step, move, planned.options.machine))});
    }
    return steps;
}

std::string table_of(const Planned& planned, std::size_t width) {
    const std::string note = note_on(planned.asked);
    return shown(cli::plan_table(planned.made, planned.options.machine, page_of(width)) +
                 (note.empty() ? "" : fmt::format("note: {}\n", note)));
}

// Table and picture; of too many devices only the table.
std::string html_of(const Planned& planned) {
    const auto picture = cli::svg_picture(planned.made.plan());
    return preformatted(table_of(planned, 120)) + (picture ? *picture : "");
}

Index nanoseconds_now() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

void add_step(nb::module_& module) {
    nb::class_<PlannedStep>(module, "Step", "One step of a plan. Bytes are of the busiest device.")
        .def_ro("kind", &PlannedStep::kind,
                "slice, all_gather, all_to_all, permute, reduce_scatter, all_reduce, zero_fill or exchange.")
        .def_ro("layout", &PlannedStep::layout, "After the step.")
        .def_ro("changes", &PlannedStep::changes, "What it changes, in a few words: dim 0 +y.")
        .def_ro("received_bytes", &PlannedStep::received_bytes, "By a device from others, at most.")
        .def_ro("sent_bytes", &PlannedStep::sent_bytes, "By a device to others, at most.")
        .def_ro("messages", &PlannedStep::messages, "Peers that a device receives from, at most.")
        .def_ro("seconds", &PlannedStep::seconds, "Estimated on the plan's machine.")
        .def("__repr__",
             [](const PlannedStep& step) { return fmt::format("<Step {} to {}>", step.kind, format(step.layout)); });
    nb::class_<Capabilities>(module, "Capabilities",
                             R"doc(What a backend can do, for the planner; reshard.mpi.capabilities(comm) asks one.

one_exchange: all ranks reach each other's memory. native_collectives: the library's own collectives run such steps. steps_overlap: a plan may run in pieces, one of which is
in a step while another is in the next.)doc")
        .def(
            "__init__",
            [](Capabilities* self, bool one_exchange, bool native, Index ranks_per_node, bool steps_overlap) {
                new (self) Capabilities{.one_exchange = one_exchange,
                                        .native_collectives = native,
                                        .steps_overlap = steps_overlap,
                                        .ranks_per_node = ranks_per_node};
            },
            "one_exchange"_a = false, "native_collectives"_a = false, "ranks_per_node"_a = 1, "steps_overlap"_a = false)
        .def_ro("one_exchange", &Capabilities::one_exchange, "All ranks reach each other's memory.")
        .def_ro("native_collectives", &Capabilities::native_collectives, "The library's own collectives run steps.")
        .def_ro("steps_overlap", &Capabilities::steps_overlap, "Steps of two pieces go on at once.")
        .def_ro("ranks_per_node", &Capabilities::ranks_per_node, "Ranks that reach each other's memory.")
        .def("__repr__", [](const Capabilities& can) {
            const auto word = [](bool yes) { return yes ? "True" : "False"; };
            return fmt::format(
                "Capabilities(one_exchange={}, native_collectives={}, ranks_per_node={}, steps_overlap={})",
                word(can.one_exchange), word(can.native_collectives), can.ranks_per_node, word(can.steps_overlap));
        });
}

template <class Value>
auto verdict(Value Verdict::*field) {
    return [field](const Planned& planned) { return planned.made.verdict().*field; };
}

void add_plan(nb::module_& module) {
    nb::class_<Planned>(module, "Plan", R"doc(How an array moves, judged, and what it costs. synthesize makes them.

print(plan) is the table of `reshard plan`; a notebook shows table and picture. Bytes are of the busiest device.)doc")
        .def_prop_ro(
            "source", [](const Planned& planned) { return planned.asked.source; }, "Where the array is.")
        .def_prop_ro(
            "target", [](const Planned& planned) { return planned.asked.target; }, "Where it is wanted.")
        .def_prop_ro(
            "note", [](const Planned& planned) { return note_on(planned.asked); },
            "What the question may be misread as: a reshape that looks like a transposition. Empty otherwise.")
        .def_prop_ro("steps", steps_of, nb::sig("def steps(self, /) -> list[Step]"),
                     "In order; none when both ends hold the same.")
        .def_prop_ro(
            "ranks", [](const Planned& planned) { return world_size(planned.made.plan()); }, "Ranks that are needed.")
        .def_prop_ro("received_bytes", verdict(&Verdict::received_bytes_max_device), "By one device over all steps.")
        .def_prop_ro("sent_bytes", verdict(&Verdict::sent_bytes_max_device), "By one device over all steps.")
        .def_prop_ro("lower_bound_bytes", verdict(&Verdict::lower_bound_bytes),
                     "No protocol's busiest receiver gets less.")
        .def_prop_ro("peak_bytes", verdict(&Verdict::peak_bytes), "The largest tile on the way.")
        .def_prop_ro("floor_bytes", verdict(&Verdict::floor_bytes), "The larger tile of the two ends.")
        .def_prop_ro("footprint_bytes", verdict(&Verdict::footprint_bytes),
                     "Source, target and workspace together, in full tiles.")
        .def_prop_ro(
            "seconds", [](const Planned& planned) { return seconds_of(planned.made.picoseconds); },
            "Estimated on `machine`.")
        .def_prop_ro(
            "machine", [](const Planned& planned) { return planned.options.machine; }, "What it was priced on.")
        .def_prop_ro(
            "optimal", [](const Planned& planned) { return planned.made.optimal; },
            "received_bytes == lower_bound_bytes.")
        .def_prop_ro(
            "search_complete", [](const Planned& planned) { return planned.made.search_complete; },
            "Nothing better for this objective exists in this vocabulary.")
        .def_prop_ro(
            "stop_reason", [](const Planned& planned) { return text_of(name(planned.made.stop_reason)); },
            nb::sig("def stop_reason(self, /) -> str"), "one_step, exhausted, budget or unsearched.")
        .def_prop_ro(
            "rule", [](const Planned& planned) { return planned.made.rule; }, "The rule that gave the plan.")
        .def_prop_ro(
            "states", [](const Planned& planned) { return planned.made.states; }, "That the search expanded.")
        .def_prop_ro(
            "execution", [](const Planned& planned) { return text_of(name(planned.made.execution())); },
            nb::sig("def execution(self, /) -> str"), "How it runs: steps, one_exchange or split.")
        .def_prop_ro(
            "donate", [](const Planned& planned) { return planned.options.limits.memory.donate; },
            "The source's memory is written.")
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
            "width"_a = 120, "What every device holds after each step, as text: `reshard draw`.")
        .def(
            "svg", [](const Planned& planned) { return unwrap(cli::svg_picture(planned.made.plan())); },
            "The same as an SVG picture. Errors: UnsupportedError (too many devices to see any of them).")
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
            "kinds", [](const Alternative& other) { return cli::kinds(other.plan()); }, "Of its steps.")
        .def_prop_ro(
            "text", [](const Alternative& other) { return format(other.plan()); }, "The plan as lines.")
        .def_prop_ro(
            "lost", [](const Alternative& other) { return other.lost; }, "Why; empty for the winner.")
        .def_prop_ro(
            "seconds", [](const Alternative& other) { return seconds_of(other.picoseconds); }, "Estimated.")
        .def_prop_ro(
            "received_bytes", [](const Alternative& other) { return other.verdict().received_bytes_max_device; },
            "By the busiest device.")
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

Options options_of(const Asked& asked, const Mesh* mesh) {
    Options options;
    options.objective = unwrap(parse_objective(asked.objective));
    options.vocabulary = unwrap(parse_vocabulary(asked.vocabulary));
    options.limits.peak_bytes_max = limit_of(asked.peak_bytes_max);
    options.limits.memory = {limit_of(asked.footprint_bytes_max), asked.donate, bytes_of(asked.staging_bytes)};
    options.machine = machine_of(asked.machine);
    if (!asked.capabilities.is_none())
        options.capabilities = instance_of<Capabilities>(asked.capabilities, "capabilities are Capabilities or None");
    const char* const wanted = "a first step is its kind, a str, and the layout after it, a Layout or its text";
    for (nb::handle step : asked.first_steps) {
        std::pair<std::string, nb::object> kind_and_layout;
        if (!nb::try_cast(step, kind_and_layout)) throw nb::type_error(wanted);
        const auto& [kind, layout] = kind_and_layout;
        Layout after;
        if (!nb::try_cast(layout, after)) {
            if (mesh == nullptr) raise({Code::usage, "the layouts of first steps are Layouts here, not texts"});
            after = unwrap(parse_layout(*mesh, value_of<std::string>(layout, wanted)));
        }
        options.first_steps.push_back({unwrap(parse_step_kind(kind)), std::move(after)});
    }
    for (nb::handle rule : asked.without)
        options.without.push_back(value_of<std::string>(rule, "`without` names rules, strs"));
    return options;
}

void add_plans(nb::module_& module) {
    add_step(module);
    add_plan(module);
    add_explanation(module);
    const std::string made =
        fmt::format("def synthesize(source: Layout, target: Layout, {}) -> Plan", options_signature);
    const std::string words =
        fmt::format(R"doc(The cheapest plan found from one layout to another, judged before it is returned.

Same question, same answer on every rank and machine; answers are remembered (the last 1024).{}
Errors: InputError (different arrays, an axis unknown, a first step that is not typed), InfeasibleError (a limit below
what any plan needs; it names the floor). Any number of threads may ask at once; the GIL is not held meanwhile.)doc",
                    options_words);
    def_asking<const Layout&, const Layout&>(
        module, "synthesize",
        [](const Layout& source, const Layout& target, const Asked& asked) {
            Options options = options_of(asked, &source.mesh);
            auto found = [&] {
                const Unlocked unlocked;
                return plans().synthesize({source, target}, options);
            }();
            return Planned{{source, target}, unwrap(std::move(found)), std::move(options)};
        },
        nb::sig(made.c_str()), words.c_str(), "source"_a, "target"_a);

    const std::string explained = fmt::format(
        "def explain(source: Layout, target: Layout, times: bool = False, {}) -> Explanation", options_signature);
    const std::string explained_words =
        fmt::format(R"doc(The plan beside everything else that was considered, and why each of those lost.

times: also how long each rule took.{}
Errors: as synthesize.)doc",
                    options_words);
    def_asking<const Layout&, const Layout&, bool>(
        module, "explain",
        [](const Layout& source, const Layout& target, bool times, const Asked& asked) {
            Options options = options_of(asked, &source.mesh);
            options.explain = true;
            if (times) options.clock = nanoseconds_now;
            auto found = [&] {
                const Unlocked unlocked;
                return reshard::synthesize(source, target, options);
            }();
            return Explained{{{source, target}, unwrap(std::move(found)), std::move(options)}};
        },
        nb::sig(explained.c_str()), explained_words.c_str(), "source"_a, "target"_a, "times"_a = false);

    nb::dict all;
    for (const Rule& rule : rules()) all[text_of(rule.name)] = text_of(rule.about);
    module.attr("planning_rules") = all;  // docs/running.md: rules of planning, not of names
}

}  // namespace reshard::python
