#include "bindings/c/answer.hpp"
#include "report/explanation.hpp"
#include "report/plan_table.hpp"
#include "reshard/text.hpp"

namespace reshard::c {
namespace {

Result<std::unique_ptr<reshard_plan>> plan_of(const reshard_layout* source, const reshard_layout* target,
                                              const reshard_options* given) {
    RESHARD_TRY(const auto* const from, need(source));
    RESHARD_TRY(const auto* const to, need(target));
    RESHARD_TRY(auto& options, options_of(given));
    RESHARD_TRY(auto* const cache, may_have(given == nullptr ? nullptr : given->cache));
    const Problem problem{from->layout, to->layout};
    RESHARD_TRY(auto& made,
                cache == nullptr ? synthesize(problem, options) : cache->cache.synthesize(problem, options));
    return std::make_unique<reshard_plan>(std::move(made), std::move(options), false);
}

// A plan by hand is judged as it would run; nothing is known of how it was found.
Result<std::unique_ptr<reshard_plan>> plan_by_hand(const char* text, const reshard_options* given) {
    RESHARD_TRY(const auto chars, need_text(text, "text"));
    RESHARD_TRY(auto& options, options_of(given));
    RESHARD_TRY(auto& plan, parse_plan(chars));
    const Execution execution = choose_execution(plan, options.capabilities, options.limits.memory, options.vocabulary);
    RESHARD_TRY(auto& judged, judge(std::move(plan), execution, options.limits));
    const Index time = plan_picoseconds(judged.plan(), judged.verdict(), options.machine);
    const bool optimal = judged.verdict().received_bytes_max_device == judged.verdict().lower_bound_bytes;
    Synthesis made{std::move(judged), time, "by hand", optimal};
    return std::make_unique<reshard_plan>(std::move(made), std::move(options), true);
}

void show(std::int64_t& field, Index count) { field = count; }
void show(std::int32_t& field, bool flag) { field = flag ? 1 : 0; }
void show(std::int32_t& field, const Execution& execution) { field = static_cast<std::int32_t>(execution.index()); }

// Out is reshard_verdict. A template may leave out rows that C does not show.
template <class Out>
Out verdict_of(const Synthesis& made, [[maybe_unused]] const Options& options) {
    Out out = RESHARD_VERDICT_INITIALIZER;
#define RESHARD_SHOWN(slot, field, json, python, kind, value, about) \
    if constexpr (requires { out.field; }) show(out.field, value);
#include "src/tables/verdict.def"
    return out;
}

Result<std::string> explained(const reshard_plan& plan) {
    if (plan.written) return fail(Code::usage, "this plan was written by hand, so nothing else was considered");
    Options options = plan.options;
    options.explain = true;
    RESHARD_TRY(const auto& made, synthesize({plan.made.plan().source, plan.made.plan().target}, options));
    return cli::explanation(made, options, {});
}

}  // namespace
}  // namespace reshard::c

using namespace reshard;
using namespace reshard::c;

extern "C" {

int reshard_machine_make(const char* specification, reshard_machine** machine, reshard_error** error) {
    return make(machine, error, [&]() -> Result<Machine> {
        RESHARD_TRY(const auto given, need_text(specification, "specification"));
        return make_machine(given);
    });
}

int reshard_machine_parse(const char* text, reshard_machine** machine, reshard_error** error) {
    return make(machine, error, [&]() -> Result<Machine> {
        RESHARD_TRY(const auto given, need_text(text, "text"));
        return parse_machine(given);
    });
}

const char* reshard_machine_text(const reshard_machine* machine) {
    return machine == nullptr ? nullptr : machine->text.c_str();
}

int reshard_plan_cache_make(int64_t plans_max, reshard_plan_cache** cache, reshard_error** error) {
    return make(cache, error, [&]() -> Result<std::size_t> {
        RESHARD_TRY(const std::size_t most, need_count(plans_max, 1, "plans_max"));
        return most;
    });
}

int reshard_plan_make(const reshard_layout* source, const reshard_layout* target, const reshard_options* options,
                      reshard_plan** plan, reshard_error** error) {
    return make(plan, error, [&] { return plan_of(source, target, options); });
}

int reshard_plan_parse(const char* text, const reshard_options* options, reshard_plan** plan, reshard_error** error) {
    return make(plan, error, [&] { return plan_by_hand(text, options); });
}

const char* reshard_plan_text(const reshard_plan* plan) { return plan == nullptr ? nullptr : plan->text.c_str(); }

int reshard_plan_ends(const reshard_plan* plan, reshard_layout** source, reshard_layout** target,
                      reshard_error** error) {
    if (source != nullptr) *source = nullptr;
    if (target != nullptr) *target = nullptr;
    return answer(plan, error, [&](auto& given) -> Result<void> {
        auto from = std::make_unique<reshard_layout>(given.made.plan().source);
        auto to = std::make_unique<reshard_layout>(given.made.plan().target);
        if (source != nullptr) *source = from.release();
        if (target != nullptr) *target = to.release();
        return {};
    });
}

int reshard_plan_table(const reshard_plan* plan, reshard_text** text, reshard_error** error) {
    return make(text, plan, error, [&](auto& given) {
        return cli::plan_table(given.made, given.options.machine, {}) + cli::line_on_nodes(given.made, given.options);
    });
}

int reshard_plan_explain(const reshard_plan* plan, reshard_text** text, reshard_error** error) {
    return make(text, plan, error, [&](auto& given) { return explained(given); });
}

uint64_t reshard_plan_fingerprint(const reshard_plan* plan) {
    if (plan == nullptr) return 0;
    return fingerprint(plan->made.plan(), plan->made.execution(), plan->made.limits().memory);
}

int reshard_plan_verdict(const reshard_plan* plan, reshard_verdict* verdict, reshard_error** error) {
    return answer(plan, error, [&](auto& given) {
        return fill(verdict, verdict_of<reshard_verdict>(given.made, given.options), "reshard_verdict");
    });
}

}  // extern "C"
