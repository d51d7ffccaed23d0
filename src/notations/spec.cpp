// JAX's PartitionSpec, both ways, and NamedSharding as it is printed.
//
// named := {word "."} "NamedSharding" "(" ["mesh" "="] mesh "," ["spec" "="] spec {"," key "=" value} ")"
// spec  := ("P" | "PartitionSpec" | "jax.sharding.PartitionSpec") "(" [item {"," item} [","]] ")"
// item  := entry | ("unreduced" | "reduced") "=" "{" [name {"," name}] "}"
// entry := "None" | name | "(" [name {"," name} [","]] ")"
// name  := "'" axis "'" | '"' axis '"'                     a tuple lists axes major to minor
//
// Dimensions past the last entry are replicated. `reduced` names axes that replicate: it is read and says nothing.
// There are no parts of axes and no other reduction than sums. UNCONSTRAINED, which leaves a dimension to the compiler,
// with P., PartitionSpec. or without, is refused: a layout says where everything is.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/try.hpp"
#include "src/notations/peers.hpp"
#include "src/notations/printed_mesh.hpp"
#include "src/text/scanner.hpp"

namespace reshard::notation {

namespace {

class Reader {
public:
    Reader(const NotationContext& setting, std::string_view text)
        : setting_(setting), mesh_(setting.mesh.value_or(Mesh{})), scanner_(text) {}

    Result<Layout> read() {
        const std::size_t begin = scanner_.place();
        RESHARD_CHECK(last_word() == "NamedSharding" ? named() : spec());
        RESHARD_CHECK(scanner_.expect_end());
        dims_.resize(std::max(dims_.size(), setting_.shape.size()));
        return assemble(scanner_, begin, setting_, mesh_, dims_, unreduced_, Reduction::sum);
    }

private:
    // The last word of a dotted name, which is left.
    std::string_view last_word() {
        const std::size_t begin = scanner_.place();
        std::string_view word = scanner_.word();
        while (!word.empty() && scanner_.take('.')) word = scanner_.word();
        scanner_.move_to(begin);
        return word;
    }

    // The mesh of the text must be the given one, if there is one.
    Result<void> named() {
        while (scanner_.word() != "NamedSharding") static_cast<void>(scanner_.take('.'));
        RESHARD_CHECK(scanner_.expect('('));
        if (scanner_.take_word("mesh")) RESHARD_CHECK(scanner_.expect('='));
        const std::size_t place = scanner_.place();
        RESHARD_TRY(auto& mesh, scan_printed_mesh(scanner_));
        if (!mesh_.axes.empty() && mesh_ != mesh)
            return scanner_.error(
                Code::mismatch,
                fmt::format("the sharding is on mesh {}, the given mesh is {}", format(mesh), format(mesh_)), place);
        mesh_ = std::move(mesh);
        RESHARD_CHECK(scanner_.expect(','));
        if (scanner_.take_word("spec")) RESHARD_CHECK(scanner_.expect('='));
        RESHARD_CHECK(spec());
        while (scanner_.take(',') && !scanner_.sees(')')) {
            static_cast<void>(scanner_.word());  // memory_kind, logical_device_ids
            RESHARD_CHECK(scanner_.expect('='));
            if (!scanner_.quoted() && !scanner_.skip_balanced('(', ')')) static_cast<void>(scanner_.word());
        }
        return scanner_.expect(')');
    }

    Result<void> spec() {
        const std::size_t begin = scanner_.place();
        std::string_view word = scanner_.word();
        while (word != "P" && word != "PartitionSpec" && !word.empty() && scanner_.take('.')) word = scanner_.word();
        if (word != "P" && word != "PartitionSpec")
            return scanner_.error(Code::syntax, "expected P(...) or PartitionSpec(...)", begin);
        RESHARD_CHECK(scanner_.expect('('));
        while (!scanner_.sees(')')) {
            RESHARD_CHECK(item());
            if (!scanner_.take(',')) break;
        }
        return scanner_.expect(')');
    }

    Result<void> item() {
        const std::size_t begin = scanner_.place();
        const std::string_view word = scanner_.word();
        if (word == "unreduced" || word == "reduced") return axis_set(word == "unreduced");
        if (word == "None") {
            dims_.emplace_back();
            return {};
        }
        if (!word.empty()) {
            if (unconstrained(word))
                return scanner_.error(Code::unsupported,
                                      "an unconstrained dimension is left to the compiler; a layout says where it is",
                                      begin);
            return scanner_.error(Code::syntax, "expected None, an axis or a tuple", begin);
        }
        AtomList& atoms = dims_.emplace_back();
        return scanner_.take('(') ? axes(')', atoms) : axis(atoms);
    }

    // UNCONSTRAINED, P.UNCONSTRAINED, jax.sharding.PartitionSpec.UNCONSTRAINED.
    bool unconstrained(std::string_view word) {
        while (word != "UNCONSTRAINED" && !word.empty() && scanner_.take('.')) word = scanner_.word();
        return word == "UNCONSTRAINED";
    }

    Result<void> axis_set(bool keep) {
        RESHARD_CHECK(scanner_.expect('='));
        if (scanner_.word() == "frozenset") static_cast<void>(scanner_.take('('));
        RESHARD_CHECK(scanner_.expect('{'));
        AtomList ignored;
        return axes('}', keep ? unreduced_ : ignored);
    }

    Result<void> axes(char close, AtomList& atoms) {
        while (!scanner_.sees(close)) {
            RESHARD_CHECK(axis(atoms));
            if (!scanner_.take(',')) break;
        }
        return scanner_.expect(close);
    }

    Result<void> axis(AtomList& atoms) {
        const std::size_t begin = scanner_.place();
        if (!scanner_.sees('\'') && !scanner_.sees('"'))
            return scanner_.error(Code::syntax, "expected None, an axis in quotes or a tuple", begin);
        RESHARD_TRY(const auto& name, scan_name(scanner_));
        RESHARD_TRY(const auto& atom, scanner_.at(atom_of(mesh_, {name, 1, 0}), begin));
        atoms.push_back(atom);
        if (atom.size > 1) used_.push_back(atom);
        if (!disjoint(used_)) return scanner_.error(Code::layout, "an axis is used twice", begin);
        return {};
    }

    const NotationContext& setting_;
    Mesh mesh_;
    Scanner scanner_;
    std::vector<AtomList> dims_;
    AtomList unreduced_;
    AtomList used_;
};

Result<std::vector<std::string>> quoted(const Layout& layout, const AtomList& atoms) {
    RESHARD_TRY(const auto& names, names_in(layout, atoms, "a PartitionSpec"));
    std::vector<std::string> words;
    for (const SubAxis& part : names) {
        if (part.size != 0)
            return cannot_say("a PartitionSpec",
                              fmt::format("a part of an axis, {}:({}){}", part.axis, part.before, part.size));
        words.push_back("'" + part.axis + "'");
    }
    return words;
}

}  // namespace

bool looks_like_spec(std::string_view text) {
    Scanner scanner(text);
    const std::string_view word = scanner.word();
    const bool known = word == "P" || word == "PartitionSpec" || word == "NamedSharding" || word == "jax";
    return known && (scanner.sees('(') || scanner.sees('.'));
}

Result<Layout> parse_spec(const NotationContext& setting, std::string_view text) {
    return Reader(setting, text).read();
}

Result<std::string> format_spec(const Layout& layout) {
    RESHARD_CHECK(require_plain_cuts(layout, "a PartitionSpec"));
    std::vector<std::string> items;
    for (const Dim& dim : layout.dims) {
        RESHARD_TRY(const auto& words, quoted(layout, dim.atoms));
        items.push_back(words.empty()       ? "None"
                        : words.size() == 1 ? words.front()
                                            : fmt::format("({})", fmt::join(words, ", ")));
    }
    if (!layout.unreduced.empty()) {
        if (layout.reduction != Reduction::sum)
            return cannot_say("a PartitionSpec",
                              fmt::format("a {}: its unreduced axes are sums", name(layout.reduction)));
        RESHARD_TRY(const auto& words, quoted(layout, layout.unreduced));
        items.push_back(fmt::format("unreduced={{{}}}", fmt::join(words, ", ")));
    }
    return fmt::format("P({})", fmt::join(items, ", "));
}

}  // namespace reshard::notation
