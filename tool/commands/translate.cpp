// `reshard translate`: a layout from one notation to another.
#include <fmt/format.h>

#include "reshard/notation.hpp"
#include "src/base/try.hpp"
#include "tool/commands/commands.hpp"
#include "tool/console/exit.hpp"
#include "tool/console/terminal.hpp"
#include "tool/request/json.hpp"

namespace reshard::cli {
namespace {

struct Translated {
    Notation notation = Notation::jax;
    std::string mesh;
    std::string layout;
};

Result<Translated> translated(const Arguments& arguments) {
    const auto to = parse_notation(arguments.to.empty() ? "jax" : arguments.to);
    if (!to) return in("--to", to.error());
    RESHARD_TRY(const auto& layout, read_layout(arguments.question, arguments.question.mesh, arguments.question.array,
                                                arguments.question.source));
    RESHARD_TRY(const auto& text, format(*to, layout));
    return Translated{*to, format(layout.mesh), text};
}

}  // namespace

int translate(const Arguments& arguments) {
    const auto made = translated(arguments);
    if (!made) return refuse(arguments.json, made.error());
    if (arguments.json) {
        answer(line(Json{{"notation", name(made->notation)}, {"mesh", made->mesh}, {"layout", made->layout}}));
        return exit_ok;
    }
    const bool brings_mesh = made->notation == Notation::sdy || made->notation == Notation::hlo;
    answer((brings_mesh ? "" : fmt::format("mesh {}\n", made->mesh)) + made->layout + "\n");
    return exit_ok;
}

}  // namespace reshard::cli
