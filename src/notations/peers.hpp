// The readers and writers of the single notations; what they share.
#pragma once

#include "reshard/notations/hlo.hpp"
#include "reshard/notations/notation.hpp"

namespace reshard::notation {

class Scanner;

[[nodiscard]] bool looks_like_spec(std::string_view text);
[[nodiscard]] Result<Layout> parse_spec(const NotationContext& setting, std::string_view text);
[[nodiscard]] Result<std::string> format_spec(const Layout& layout);

[[nodiscard]] bool looks_like_sdy_mesh(std::string_view text);
[[nodiscard]] Result<Mesh> parse_sdy_mesh(std::string_view text);
[[nodiscard]] Result<Layout> parse_sdy(const NotationContext& setting, std::string_view text);
[[nodiscard]] Result<std::string> format_sdy(const Layout& layout);

[[nodiscard]] Result<Layout> parse_hlo_layout(const NotationContext& setting, std::string_view text);
[[nodiscard]] Result<std::string> format_hlo(const Layout& layout);
/// A sharding of HLO as a layout, its own mesh where the setting's has no names for it. Errors: layout, unsupported.
[[nodiscard]] Result<Layout> layout_of(const HloSharding& sharding, const NotationContext& setting);

[[nodiscard]] Result<Layout> parse_placements(const NotationContext& setting, std::string_view text);
[[nodiscard]] Result<std::string> format_placements(const Layout& layout);

/// Axes by name in some quotes, as sdy and HloSharding V3 write them: "x" or 'y':(1)2. Each is resolved where it
/// stands, and an axis that is used twice is an error there.
class NamedAxes {
public:
    NamedAxes(Scanner& scanner, const Mesh& mesh) : scanner_(scanner), mesh_(mesh) {}

    /// "{" [axis {"," axis}] [","] ["?"] "}"; "?" only where `open`.
    [[nodiscard]] Result<AtomList> braces(bool open);
    /// "[" [braces ["p" priority] {"," ...}] "]".
    [[nodiscard]] Result<std::vector<AtomList>> dims();
    /// ["sum" | "max" | "min"] braces.
    [[nodiscard]] Result<AtomList> unreduced(Reduction& reduction);

private:
    Result<Atom> axis();

    Scanner& scanner_;
    const Mesh& mesh_;
    SubAxis last_;
    AtomList used_;
};

/// A name in " or ', or bare.
[[nodiscard]] Result<std::string> scan_name(Scanner& scanner);
/// name "=" size {"," name "=" size}, up to the closing bracket, which is left.
[[nodiscard]] Result<std::vector<Axis>> scan_mesh_axes(Scanner& scanner, char close);

/// Axes of one list, spelled by `spell` and joined by `between`; unsupported where an atom has no name, which `what`
/// has.
[[nodiscard]] Result<std::vector<SubAxis>> names_in(const Layout& layout, const AtomList& atoms, std::string_view what);

/// Code::unsupported when a dimension is not cut by ceil-div at once, which this notation cannot say.
[[nodiscard]] Result<void> require_plain_cuts(const Layout& layout, std::string_view notation);
/// The notation's refusal.
[[nodiscard]] tl::unexpected<Error> cannot_say(std::string_view notation, std::string_view what);

/// Dims and unreduced axes on a mesh, in the array of a setting; validated, errors at `begin` of the scanner's text.
[[nodiscard]] Result<Layout> assemble(Scanner& scanner, std::size_t begin, const NotationContext& setting,
                                      const Mesh& mesh, const std::vector<AtomList>& dims, const AtomList& unreduced,
                                      Reduction reduction);

}  // namespace reshard::notation
