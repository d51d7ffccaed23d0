// Which notation says what: names, and the way to each reader and writer.
#include "reshard/notations/notation.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "reshard/planner/refinement.hpp"
#include "src/base/try.hpp"
#include "src/layout/axes.hpp"
#include "src/notations/peers.hpp"
#include "src/notations/printed_mesh.hpp"
#include "src/text/scanner.hpp"

namespace reshard {

namespace {

Result<Layout> parse_own(const NotationContext& setting, std::string_view text) {
    if (notation::looks_like_spec(text)) return notation::parse_spec(setting, text);
    return parse_layout(setting.mesh.value_or(Mesh{}), text);
}

Result<std::string> format_own(const Layout& layout) { return format(layout); }

struct Row {
    std::string_view name;
    Result<Layout> (*parse)(const NotationContext&, std::string_view);
    Result<std::string> (*format)(const Layout&);
};
constexpr std::array<Row, 5> rows = {{{"jax", parse_own, format_own},
                                      {"spec", notation::parse_spec, notation::format_spec},
                                      {"sdy", notation::parse_sdy, notation::format_sdy},
                                      {"hlo", notation::parse_hlo_layout, notation::format_hlo},
                                      {"dtensor", notation::parse_placements, notation::format_placements}}};

const Row& row(Notation notation) { return rows[static_cast<std::size_t>(notation)]; }

struct Alias {
    std::string_view name;
    Notation notation;
};
constexpr std::array<Alias, 3> aliases = {
    {{"shardy", Notation::sdy}, {"xla", Notation::hlo}, {"placements", Notation::dtensor}}};

// Sizes alone: 8, (4, 2) or [4, 2].
bool begins_with_sizes(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(" \t");
    return begin != std::string_view::npos && std::string_view("([0123456789").find(text[begin]) != text.npos;
}

Result<Mesh> parse_sizes(std::string_view text) {
    notation::Scanner scanner(text);
    const char close = scanner.take('(') ? ')' : scanner.take('[') ? ']' : '\0';
    Mesh mesh;
    AxisRules rules;
    while (close == '\0' || !scanner.sees(close)) {
        RESHARD_TRY(const auto& size, scanner.integer("the size of a mesh dimension"));
        mesh.axes.push_back({fmt::format("d{}", mesh.axes.size()), size});
        RESHARD_CHECK(scanner.at(rules.allow(mesh.axes.back()), scanner.offset()));
        if (!scanner.take(',')) break;
    }
    if (close != '\0') RESHARD_CHECK(scanner.expect(close));
    RESHARD_CHECK(scanner.expect_end());
    return mesh;
}

}  // namespace

std::string_view name(Notation notation) { return row(notation).name; }

Result<Notation> parse_notation(std::string_view text) {
    for (const Notation notation : all_notations)
        if (text == name(notation)) return notation;
    for (const Alias& alias : aliases)
        if (text == alias.name) return alias.notation;
    return fail(Code::syntax,
                fmt::format("'{}' is not a notation: jax, spec, sdy, hlo or dtensor", text.substr(0, 40)));
}

Result<NotationContext> parse_array(std::string_view text) {
    constexpr std::string_view torch = "torch.";  // as PyTorch prints a dtype: torch.bfloat16[8, 16]
    if (text.starts_with(torch)) text.remove_prefix(torch.size());
    RESHARD_TRY(const auto& layout, parse_layout(Mesh{}, text));
    return NotationContext{std::nullopt, layout.dtype, shape(layout)};
}

Result<Mesh> parse_mesh(Notation notation, std::string_view text) {
    if (notation::looks_like_printed_mesh(text)) return notation::parse_printed_mesh(text);
    if (notation == Notation::sdy && notation::looks_like_sdy_mesh(text)) return notation::parse_sdy_mesh(text);
    if ((notation == Notation::hlo || notation == Notation::dtensor) && begins_with_sizes(text))
        return parse_sizes(text);
    return parse_mesh(text);
}

Result<Layout> parse_layout(Notation notation, const NotationContext& setting, std::string_view text) {
    return row(notation).parse(setting, text);
}

namespace {

AtomList atoms_of(const Layout& layout) {
    AtomList atoms = layout.unreduced;
    for (const Dim& dim : layout.dims) atoms.insert(atoms.end(), dim.atoms.begin(), dim.atoms.end());
    return atoms;
}

bool names_all(const Mesh& mesh, const AtomList& atoms) {
    return std::ranges::all_of(atoms, [&](Atom atom) { return names_of(mesh, atom).has_value(); });
}

// An axis for each digit.
Mesh named_after(const AtomList& digits) {
    constexpr std::string_view letters = "xyzwuv";
    Mesh mesh;
    for (std::size_t i = 0; i < digits.size(); ++i)
        mesh.axes.push_back({i < letters.size() ? std::string(1, letters[i]) : fmt::format("a{}", i), digits[i].size});
    return mesh;
}

}  // namespace

void share_mesh(Layout& a, Layout& b) {
    const Index devices = device_count(a);
    const bool alike = devices == device_count(b) && a.mesh.devices.in_order() && b.mesh.devices.in_order();
    if (!alike || a.mesh == b.mesh) return;
    AtomList all = atoms_of(a);
    const AtomList more = atoms_of(b);
    all.insert(all.end(), more.begin(), more.end());
    for (Layout* one : {&a, &b}) {
        if (!names_all(one->mesh, all)) continue;
        a.mesh = b.mesh = Mesh(one->mesh);
        return;
    }
    std::vector<Index> borders = {1, devices};
    append_borders(all, borders);
    const auto digits = refinement(std::move(borders));
    if (digits && combinations(*digits) == devices) a.mesh = b.mesh = named_after(*digits);
}

Result<std::string> format(Notation notation, const Layout& layout) {
    RESHARD_CHECK(validate(layout));
    return row(notation).format(layout);
}

}  // namespace reshard
