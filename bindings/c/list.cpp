#include <cstddef>

#include "bindings/c/answer.hpp"

namespace reshard::c {
namespace {

// The memory policy holds for the whole list, so each array fits by itself.
Result<std::unique_ptr<reshard_list>> list_of(const reshard_layout* const* sources,
                                              const reshard_layout* const* targets, int64_t count,
                                              const reshard_options* given) {
    RESHARD_TRY(const auto& problems, problems_of(sources, targets, count));
    RESHARD_TRY(auto& options, options_of(given));
    const MemoryPolicy memory = std::exchange(options.limits.memory, {});
    RESHARD_TRY(auto& made, synthesize(problems, options, memory));
    return std::make_unique<reshard_list>(std::move(made), std::move(options));
}

reshard_list_verdict verdict_of(const ListSynthesis& made) {
    const ListVerdict& verdict = made.verdict();
    reshard_list_verdict out = RESHARD_LIST_VERDICT_INITIALIZER;
    out.arrays = std::ssize(made.arrays);
    out.buckets = std::ssize(made.list().buckets);
    out.footprint_bytes = verdict.footprint_bytes;
    out.ends_bytes = verdict.ends_bytes;
    out.floor_bytes = made.floor_bytes;
    out.messages = verdict.load.messages;
    out.received_bytes = verdict.load.received_bytes;
    out.picoseconds = made.picoseconds;
    out.sent_bytes = verdict.load.sent_bytes;
    out.lower_bound_bytes = verdict.lower_bound_bytes;
    out.received_exact = verdict.load.received_exact ? 1 : 0;
    out.sent_exact = verdict.load.sent_exact ? 1 : 0;
    return out;
}

}  // namespace
}  // namespace reshard::c

using namespace reshard;
using namespace reshard::c;

extern "C" {

int reshard_list_make(const reshard_layout* const* sources, const reshard_layout* const* targets, int64_t count,
                      const reshard_options* options, reshard_list** list, reshard_error** error) {
    return make(list, error, [&] { return list_of(sources, targets, count, options); });
}

int reshard_list_plan(const reshard_list* list, int64_t array, reshard_plan** plan, reshard_error** error) {
    return make(plan, list, error, [&](auto& given) -> Result<std::unique_ptr<reshard_plan>> {
        RESHARD_TRY(const std::size_t number, need_count(array, 0, "array"));
        const auto& arrays = given.made.arrays;
        if (number >= arrays.size()) {
            return fail(Code::usage, "there is no array " + std::to_string(number) + " in a list of " +
                                         std::to_string(arrays.size()));
        }
        return std::make_unique<reshard_plan>(arrays[number], given.options, false);
    });
}

int reshard_list_judge(const reshard_list* list, reshard_list_verdict* verdict, reshard_error** error) {
    return answer(list, error, [&](auto& given) -> Result<void> {
        constexpr std::size_t of_version_0_2 = offsetof(reshard_list_verdict, sent_bytes);
        return fill(verdict, verdict_of(given.made), "reshard_list_verdict", of_version_0_2);
    });
}

}  // extern "C"
