#include <algorithm>

#include <fmt/format.h>

#include "reshard/planner/view.hpp"
#include "reshard/problem.hpp"
#include "reshard/text.hpp"
#include "src/base/try.hpp"

namespace reshard {

Result<Problem> to_common_shape(const Problem& problem) {
    const DType dtype = problem.target.dtype;
    if (dtype == problem.source.dtype) {
        RESHARD_TRY(auto& ends, in_common_view(problem.source, problem.target));
        return Problem{std::move(ends.first), std::move(ends.second)};
    }
    for (const Layout* end : {&problem.source, &problem.target}) RESHARD_CHECK(validate(*end));
    Layout target = problem.target;
    target.dtype = problem.source.dtype;
    RESHARD_TRY(auto& ends, in_common_view(problem.source, target));
    ends.second.dtype = dtype;
    return Problem{std::move(ends.first), std::move(ends.second)};
}

std::string note_on(const Problem& problem) {
    std::vector<Index> before = shape(problem.source);
    std::vector<Index> after = shape(problem.target);
    std::erase(before, 1);
    std::erase(after, 1);
    if (before == after || !std::ranges::is_permutation(before, after)) return {};
    return fmt::format(
        "{} to {} is read as a reshape, in which elements keep their row-major order, not as a transposition (permute "
        "makes one)",
        format(problem.source), format(problem.target));
}

}  // namespace reshard
