// `reshard translate`: a layout from one notation to another.
#include <fmt/format.h>

#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "tool/commands/commands.hpp"
#include "tool/console/exit.hpp"
#include "tool/console/terminal.hpp"
#include "tool/request/json.hpp"

namespace reshard::cli {

Result<int> translate(const Arguments& arguments) {
    RESHARD_TRY(const auto& to, in("--to", parse_notation(arguments.to.empty() ? "jax" : arguments.to)));
    RESHARD_TRY(const auto& layout, read_layout(arguments.question, arguments.question.mesh, arguments.question.array,
                                                arguments.question.source));
    RESHARD_TRY(const auto& text, format(to, layout));
    const std::string mesh = format(layout.mesh);
    if (arguments.json)
        answer(line(Json{{"notation", name(to)}, {"mesh", mesh}, {"layout", text}}));
    else
        answer((brings_mesh(to) ? "" : fmt::format("mesh {}\n", mesh)) + text + "\n");
    return exit_ok;
}

}  // namespace reshard::cli
