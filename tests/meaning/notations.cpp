// A layout that is printed in a notation and read again gives every device the same.
#include <fmt/format.h>

#include "meaning/asked.hpp"
#include "meaning/holders.hpp"
#include "reshard/notations/hlo.hpp"
#include "reshard/text.hpp"

namespace reshard::test {

namespace {

std::string objection_to_texts(const Layout& layout, const std::vector<Holder>& held) {
    const auto mesh = parse_mesh(format(layout.mesh));
    if (!mesh || *mesh != layout.mesh) return "the mesh is read back as another: " + format(layout.mesh);
    for (const Notation notation : all_notations) {
        const auto text = format(notation, layout);
        if (!text && text.error().code == Code::unsupported && notation != Notation::jax) continue;
        if (!text) return fmt::format("{} is not printed: {}", name(notation), text.error().message);
        const auto back = parse_layout(notation, {layout.mesh, layout.dtype, shape(layout)}, *text);
        if (!back) return fmt::format("printed as {} and refused: {}", name(notation), describe(back.error()));
        if (auto wrong = difference(*back, held); !wrong.empty())
            return fmt::format("printed as {}, {}, and read back otherwise: {}", name(notation), *text, wrong);
        if (!layout.unreduced.empty() && back->reduction != layout.reduction)
            return fmt::format("printed as {}, {}, with another reduction", name(notation), *text);
    }
    return "";
}

}  // namespace

std::string objection_to_notations(const Draft& draft, const cli::Request& asked) {
    const Index world = world_of(draft);
    if (auto wrong = objection_to_texts(asked.problem.source, holders(draft.source, world)); !wrong.empty())
        return wrong;
    if (auto wrong = objection_to_texts(asked.problem.target, holders(draft.target, world)); !wrong.empty())
        return wrong;
    if (draft.notation != Notation::hlo) return "";
    for (const End* end : {&draft.source, &draft.target}) {
        const std::string text = foreign_text(draft, *end).value();
        const auto once = parse_hlo(text);
        const auto twice = once ? parse_hlo(format(*once)) : once;
        if (!twice || *twice != *once) return fmt::format("{} is printed as another", text);
    }
    return "";
}

}  // namespace reshard::test
