#include "reshard/algebra/view.hpp"
#include "reshard/problem.hpp"
#include "src/base/try.hpp"

namespace reshard {

Result<Problem> unified(const Problem& problem) {
    for (const Layout* end : {&problem.source, &problem.target}) RESHARD_CHECK(validate(*end));
    RESHARD_TRY(auto& ends, in_common_view(problem.source, problem.target));
    return Problem{std::move(ends.first), std::move(ends.second)};
}

}  // namespace reshard
