// Axes by name, as sdy and HloSharding V3 write them.
#include <fmt/format.h>

#include "src/base/try.hpp"
#include "src/layout/axes.hpp"
#include "src/notations/peers.hpp"
#include "src/text/scanner.hpp"

namespace reshard::notation {

Result<std::string> scan_name(Scanner& scanner) {
    const char quote = scanner.sees('"') ? '"' : scanner.sees('\'') ? '\'' : '\0';
    if (quote != '\0') scanner.take(quote);
    const std::size_t begin = scanner.offset();
    const std::string word(scanner.word());
    if (word.empty()) return scanner.error(Code::syntax, "expected the name of an axis", begin);
    if (quote != '\0') RESHARD_CHECK(scanner.expect(quote));
    return word;
}

Result<std::vector<Axis>> scan_mesh_axes(Scanner& scanner, char close) {
    std::vector<Axis> axes;
    AxisRules rules;
    if (scanner.sees(close)) return axes;
    do {
        const std::size_t begin = scanner.place();
        RESHARD_TRY(const auto& name, scan_name(scanner));
        RESHARD_CHECK(scanner.expect('='));
        RESHARD_TRY(const auto& size, scanner.integer("the axis size"));
        axes.push_back({name, size});
        RESHARD_CHECK(scanner.at(rules.allow(axes.back()), begin));
    } while (scanner.take(','));
    return axes;
}

Result<Atom> NamedAxes::axis() {
    const std::size_t begin = scanner_.place();
    RESHARD_TRY(const auto& name, scan_name(scanner_));
    SubAxis part{name, 1, 0};
    if (scanner_.take(':')) {
        RESHARD_CHECK(scanner_.expect('('));
        RESHARD_TRY(const auto& before, scanner_.integer("the factor before"));
        RESHARD_CHECK(scanner_.expect(')'));
        RESHARD_TRY(const auto& size, scanner_.integer("the factor's size"));
        if (size < 1) return scanner_.error(Code::layout, "a factor has size 0", begin);
        part.before = before;
        part.size = size;
    }
    RESHARD_TRY(const auto& atom, scanner_.at(atom_of(mesh_, part), begin));
    // Two parts of an axis that could be one are one, or one layout would have two texts.
    const bool continues = last_.axis == part.axis && last_.size > 0 && part.size > 0 &&
                           checked_multiply(last_.before, last_.size) == part.before;
    if (continues)
        return scanner_.error(Code::layout,
                              fmt::format("continues the part before it: write \"{}\":({}){}", part.axis, last_.before,
                                          saturating_multiply(last_.size, part.size)),
                              begin);
    last_ = part;
    if (atom.size > 1) used_.push_back(atom);
    if (!disjoint(used_))
        return scanner_.error(Code::layout, "an axis, or parts of it that overlap, is used twice", begin);
    return atom;
}

Result<AtomList> NamedAxes::braces(bool open) {
    RESHARD_CHECK(scanner_.expect('{'));
    AtomList atoms;
    last_ = {};
    while (!scanner_.sees('}')) {
        if (open && scanner_.take('?')) break;  // may be sharded further, which is nothing to us
        RESHARD_TRY(const auto& atom, axis());
        atoms.push_back(atom);
        if (!scanner_.take(',')) break;
        if (scanner_.sees('}')) return scanner_.error(Code::syntax, "expected the name of an axis");
    }
    RESHARD_CHECK(scanner_.expect('}'));
    return atoms;
}

Result<std::vector<AtomList>> NamedAxes::dims() {
    RESHARD_CHECK(scanner_.expect('['));
    std::vector<AtomList> dims;
    if (scanner_.take(']')) return dims;
    do {
        RESHARD_TRY(auto& atoms, braces(true));
        dims.push_back(std::move(atoms));
        if (!scanner_.take('p')) continue;  // a priority says nothing about where elements lie
        RESHARD_CHECK(scanner_.integer("the priority"));
    } while (scanner_.take(','));
    RESHARD_CHECK(scanner_.expect(']'));
    return dims;
}

Result<AtomList> NamedAxes::unreduced(Reduction& reduction) {
    const std::size_t begin = scanner_.place();
    const std::string_view word = scanner_.word();
    if (!word.empty()) {
        const auto read = parse_reduction(word);
        if (!read || *read == Reduction::prod || *read == Reduction::avg)
            return scanner_.error(Code::syntax, "expected sum, max or min, or the unreduced axes", begin);
        reduction = *read;
    }
    return braces(false);
}

tl::unexpected<Error> cannot_say(std::string_view notation, std::string_view what) {
    return fail(Code::unsupported, fmt::format("{} cannot say {}", notation, what));
}

Result<void> require_plain_cuts(const Layout& layout, std::string_view notation) {
    for (std::size_t i = 0; i < layout.dims.size(); ++i)
        if (!by_ceil_div(layout.dims[i]))
            return cannot_say(notation, fmt::format("where dimension {} is cut: it is not ceil-div of {} indices by {}",
                                                    i, layout.dims[i].extent, shard_count(layout.dims[i])));
    return {};
}

Result<std::vector<SubAxis>> names_in(const Layout& layout, const AtomList& atoms, std::string_view notation) {
    std::vector<SubAxis> names;
    for (const Atom& atom : atoms) {
        const auto parts = names_of(layout.mesh, atom);
        if (!parts)
            return cannot_say(notation, fmt::format("the digit of size {} and stride {} of the device number: no axis "
                                                    "of the mesh has it",
                                                    atom.size, atom.stride));
        names.insert(names.end(), parts->begin(), parts->end());
    }
    return names;
}

Result<Layout> assemble(Scanner& scanner, std::size_t begin, const NotationContext& setting, const Mesh& mesh,
                        const std::vector<AtomList>& dims, const AtomList& unreduced, Reduction reduction) {
    if (dims.size() != setting.shape.size())
        return scanner.error(
            Code::layout, fmt::format("it has {} dimensions, the array {}", dims.size(), setting.shape.size()), begin);
    Layout layout;
    layout.dtype = setting.dtype;
    layout.mesh = mesh;
    for (std::size_t i = 0; i < dims.size(); ++i) layout.dims.emplace_back(setting.shape[i], canonical(dims[i]));
    layout.unreduced = as_set(unreduced);
    layout.reduction = reduction;
    RESHARD_CHECK(scanner.at(validate(layout), begin));
    return layout;
}

}  // namespace reshard::notation
