// Shardy's sdy text, both ways.
//
// text     := ["#sdy.sharding"] sharding | "#sdy.sharding_per_value" "<" "[" sharding "]" ">"
// sharding := "<" meshref "," "[" [dim {"," dim}] "]" {"," set} ">"
// meshref  := "@" name | "mesh" mesh
// mesh     := "<" "[" [axis "=" size {"," axis "=" size}] "]" ["," "device_ids" "=" "[" id {"," id} "]"] ">"
// dim      := "{" [part {"," part} [","]] ["?"] "}" ["p" priority]        major to minor; open and priority are ignored
// set      := "replicated" "=" parts | "unreduced" "=" ["sum" | "max" | "min"] parts
// parts    := "{" [part {"," part}] "}"
// part     := '"' axis '"' [":(" before ")" size]
//
// A list with the shardings of several values is refused at the second: a layout is of one array.
// As in Shardy no axis is used twice, and neighbouring parts of an axis are joined. device_ids are a permutation other
// than the identity, or name one device if the mesh has no axis.
#include <fmt/format.h>

#include "src/base/try.hpp"
#include "src/notations/peers.hpp"
#include "src/text/scanner.hpp"

namespace reshard::notation {

namespace {

Result<Mesh> scan_mesh(Scanner& scanner) {
    RESHARD_CHECK(scanner.expect('<'));
    RESHARD_CHECK(scanner.expect('['));
    RESHARD_TRY(auto& axes, scan_mesh_axes(scanner, ']'));
    RESHARD_CHECK(scanner.expect(']'));
    Mesh mesh(std::move(axes));
    if (scanner.take(',')) {
        const std::size_t begin = scanner.place();
        if (scanner.word() != "device_ids") return scanner.error(Code::syntax, "expected device_ids", begin);
        RESHARD_CHECK(scanner.expect('='));
        RESHARD_CHECK(scanner.expect('['));
        const std::size_t list = scanner.place();
        RESHARD_TRY(const auto& ids, scan_numbers(scanner, "a device", 0));
        RESHARD_CHECK(scanner.expect(']'));
        mesh.devices = DeviceList(ids);
        RESHARD_CHECK(scanner.at(validate(mesh), list));
        if (!mesh.axes.empty() && mesh.devices.in_order())
            return scanner.error(Code::mesh, "the device ids are in order: leave them out", list);
        for (const Index id : ids)
            if (!mesh.axes.empty() && id >= device_count(mesh))
                return scanner.error(Code::mesh, "the device ids are not a permutation of 0, 1, ...", list);
    }
    RESHARD_CHECK(scanner.expect('>'));
    return mesh;
}

// Consumes a dialect prefix such as #sdy.sharding.
Result<void> scan_prefix(Scanner& scanner, std::string_view last) {
    if (!scanner.take('#')) return {};
    const std::size_t begin = scanner.place();
    const bool good = scanner.word() == "sdy" && scanner.take('.') && scanner.word() == last;
    if (!good) return scanner.error(Code::syntax, fmt::format("expected #sdy.{}", last), begin);
    return {};
}

Result<Mesh> scan_mesh_reference(Scanner& scanner, const NotationContext& setting) {
    const std::size_t begin = scanner.place();
    if (scanner.take('@')) {
        if (scanner.word().empty()) return scanner.error(Code::syntax, "expected the name of a mesh");
        if (!setting.mesh) return scanner.error(Code::mesh, "a mesh by name: say what it is", begin);
        return *setting.mesh;
    }
    if (scanner.word() != "mesh")
        return scanner.error(Code::syntax, "expected @ and a mesh's name, or mesh<...>", begin);
    return scan_mesh(scanner);
}

Result<std::string> spelled(const Layout& layout, const AtomList& atoms) {
    RESHARD_TRY(const auto& names, names_in(layout, atoms, "sdy"));
    std::string text = "{";
    for (const SubAxis& part : names) {
        text += fmt::format("{}\"{}\"", text.size() > 1 ? ", " : "", part.axis);
        if (part.size != 0) text += fmt::format(":({}){}", part.before, part.size);
    }
    return text + "}";
}

Result<std::string> spelled(const Mesh& mesh) {
    std::string text = "<[";
    for (std::size_t i = 0; i < mesh.axes.size(); ++i)
        text += fmt::format("{}\"{}\"={}", i > 0 ? ", " : "", mesh.axes[i].name, mesh.axes[i].size);
    text += "]";
    const Index count = device_count(mesh);
    if (!mesh.devices.in_order()) {
        text += ", device_ids=[";
        for (Index position = 0; position < count; ++position) {
            const Index device = device_at(mesh, position);
            if (!mesh.axes.empty() && device >= count)
                return cannot_say("sdy", fmt::format("a mesh of {} devices with device {} in it", count, device));
            text += fmt::format("{}{}", position > 0 ? ", " : "", device);
        }
        text += "]";
    }
    return text + ">";
}

}  // namespace

bool looks_like_sdy_mesh(std::string_view text) {
    Scanner scanner(text);
    return scanner.sees('<') || scanner.sees('#') || (scanner.word() == "sdy" && scanner.sees('.')) ||
           scanner.sees('<');
}

Result<Mesh> parse_sdy_mesh(std::string_view text) {
    Scanner scanner(text);
    RESHARD_CHECK(scan_prefix(scanner, "mesh"));
    const std::string_view word = scanner.word();
    if (word == "sdy") {  // sdy.mesh @name = <...>
        const std::size_t begin = scanner.offset();
        const bool good = scanner.take('.') && scanner.word() == "mesh" && scanner.take('@') &&
                          !scanner.word().empty() && scanner.take('=');
        if (!good) return scanner.error(Code::syntax, "expected sdy.mesh @name = <...>", begin);
    } else if (!word.empty() && word != "mesh") {
        return scanner.error(Code::syntax, "expected a mesh, <[\"x\"=2]>", 0);
    }
    RESHARD_TRY(auto& mesh, scan_mesh(scanner));
    RESHARD_CHECK(scanner.expect_end());
    return std::move(mesh);
}

namespace {

Result<Layout> scan_sharding(Scanner& scanner, const NotationContext& setting) {
    RESHARD_CHECK(scanner.expect('<'));
    RESHARD_TRY(const auto& mesh, scan_mesh_reference(scanner, setting));
    RESHARD_CHECK(scanner.expect(','));
    const std::size_t begin = scanner.place();
    NamedAxes axes(scanner, mesh);
    RESHARD_TRY(const auto& dims, axes.dims());
    AtomList unreduced;
    Reduction reduction = Reduction::sum;
    bool seen_replicated = false;
    bool seen_unreduced = false;
    while (scanner.take(',')) {
        const std::size_t place = scanner.place();
        const std::string_view word = scanner.word();
        bool& seen = word == "unreduced" ? seen_unreduced : seen_replicated;
        if ((word != "replicated" && word != "unreduced") || seen)
            return scanner.error(Code::syntax, seen ? "given twice" : "expected replicated or unreduced", place);
        seen = true;
        RESHARD_CHECK(scanner.expect('='));
        RESHARD_TRY(const auto& list, word == "unreduced" ? axes.unreduced(reduction) : axes.braces(false));
        if (word == "unreduced") unreduced = list;
    }
    RESHARD_CHECK(scanner.expect('>'));
    return assemble(scanner, begin, setting, mesh, dims, unreduced, reduction);
}

// Behind its prefix: the list, which must be of one value.
Result<Layout> scan_one_value(Scanner& scanner, const NotationContext& setting) {
    RESHARD_CHECK(scanner.expect('<'));
    RESHARD_CHECK(scanner.expect('['));
    if (scanner.sees(']'))
        return scanner.error(Code::unsupported, "the shardings of no value; a layout is of one array");
    RESHARD_TRY(auto& layout, scan_sharding(scanner, setting));
    if (scanner.take(','))
        return scanner.error(Code::unsupported, "the shardings of several values; a layout is of one array",
                             scanner.place());
    RESHARD_CHECK(scanner.expect(']'));
    RESHARD_CHECK(scanner.expect('>'));
    return std::move(layout);
}

bool take_per_value(Scanner& scanner) {
    Scanner ahead = scanner;
    const bool found =
        ahead.take('#') && ahead.take_word("sdy") && ahead.take('.') && ahead.take_word("sharding_per_value");
    if (found) scanner = ahead;
    return found;
}

}  // namespace

Result<Layout> parse_sdy(const NotationContext& setting, std::string_view text) {
    Scanner scanner(text);
    const bool per_value = take_per_value(scanner);
    if (!per_value) RESHARD_CHECK(scan_prefix(scanner, "sharding"));
    RESHARD_TRY(auto& layout, per_value ? scan_one_value(scanner, setting) : scan_sharding(scanner, setting));
    RESHARD_CHECK(scanner.expect_end());
    return std::move(layout);
}

Result<std::string> format_sdy(const Layout& layout) {
    RESHARD_CHECK(require_plain_cuts(layout, "sdy"));
    RESHARD_TRY(const auto& mesh, spelled(layout.mesh));
    std::string text = "#sdy.sharding<mesh" + mesh + ", [";
    for (std::size_t i = 0; i < layout.dims.size(); ++i) {
        RESHARD_TRY(const auto& axes, spelled(layout, layout.dims[i].atoms));
        text += (i > 0 ? ", " : "") + axes;
    }
    text += "]";
    if (!layout.unreduced.empty()) {
        if (layout.reduction == Reduction::prod || layout.reduction == Reduction::avg)
            return cannot_say("sdy", fmt::format("a {}: it has sum, max and min", name(layout.reduction)));
        RESHARD_TRY(const auto& axes, spelled(layout, layout.unreduced));
        const bool sum = layout.reduction == Reduction::sum;
        text += fmt::format(", unreduced={}{}", sum ? "" : name(layout.reduction), axes);
    }
    return text + ">";
}

}  // namespace reshard::notation
