#include "cases/peer_line.hpp"

#include <fmt/format.h>

#include <map>

#include "reshard/notations/notation.hpp"

namespace reshard::cli {
namespace {

tl::unexpected<Error> refuse(std::string message) { return fail(Code::syntax, std::move(message)); }

const Json* field(const Json& row, const char* name, const char* other = nullptr) {
    for (const char* one : {name, other}) {
        if (!one) continue;
        const auto found = row.find(one);
        if (found != row.end() && !found->is_null()) return &*found;
    }
    return nullptr;
}

// A list of numbers or words, as text.
Result<std::string> joined(const Json& list, const std::string& what) {
    std::string text;
    for (const Json& entry : list) {
        if (!entry.is_number_integer() && !entry.is_string())
            return refuse(what + " holds something else than it should");
        text += (text.empty() ? "" : ",") + (entry.is_string() ? entry.get<std::string>() : entry.dump());
    }
    return text;
}

Result<std::string> word(const Json& row, const char* name) {
    const Json* found = field(row, name);
    if (!found) return std::string();
    if (!found->is_string()) return refuse(fmt::format("\"{}\" must be a string", name));
    return found->get<std::string>();
}

// The mesh of one side: text, sizes, or a count of devices, and the devices if they are listed.
Result<std::string> mesh_of(const Json& row, const char* name, const char* ids_name, bool sizes) {
    std::string text;
    if (const Json* mesh = field(row, name)) {
        if (mesh->is_string()) {
            text = mesh->get<std::string>();
        } else if (mesh->is_array()) {
            auto list = joined(*mesh, name);
            if (!list) return list;
            text = "(" + *list + ")";
        } else {
            return refuse(fmt::format("\"{}\" must be a string or a list of sizes", name));
        }
    }
    // A table of XLA states the number of devices, and the mesh that its author had in mind.
    if (const Json* devices = field(row, "devices"); devices && sizes) {
        if (!devices->is_number_integer()) return refuse("\"devices\" must be a count");
        text = devices->dump();
    }
    if (const Json* ids = field(row, ids_name)) {
        if (!ids->is_array()) return refuse(fmt::format("\"{}\" must be a list of devices", ids_name));
        auto list = joined(*ids, ids_name);
        if (!list) return list;
        text += "[" + *list + "]";
    }
    return text;
}

// {"0": [1, 0]}: mesh axis 1 cuts dimension 0, then axis 0 does. Adds these places to the placements.
Result<void> add_places(const Json& order, std::vector<std::string>& placements) {
    if (!order.is_object()) return refuse("the order of axes must be an object");
    for (const auto& [dim, axes] : order.items()) {
        if (!axes.is_array()) return refuse("the order of axes must be lists of axes");
        Index place = 0;
        for (const Json& axis : axes) {
            if (!axis.is_number_unsigned() || axis.get<std::size_t>() >= placements.size())
                return refuse(fmt::format("the order of dimension {} names an axis that there is not", dim));
            placements[axis.get<std::size_t>()] += fmt::format("[{}]", place++);
        }
    }
    return {};
}

Result<std::string> layout_of_side(const Json& row, bool target) {
    const char* names[] = {"source", "src", "target", "dst"};
    const char* orders[] = {"source_order", "src_order", "target_order", "dst_order"};
    const std::size_t side = target ? 2 : 0;
    const Json* text = field(row, names[side], names[side + 1]);
    if (!text) return refuse(fmt::format("\"{}\" is missing", names[side]));
    if (text->is_array()) {
        std::vector<std::string> placements;
        for (const Json& one : *text) {
            if (!one.is_string()) return refuse("a placement must be a string");
            placements.push_back(one.get<std::string>());
        }
        if (const Json* order = field(row, orders[side], orders[side + 1]))
            if (auto added = add_places(*order, placements); !added) return tl::unexpected(added.error());
        std::string list;
        for (const std::string& one : placements) list += (list.empty() ? "" : ", ") + one;
        return "[" + list + "]";
    }
    if (!text->is_string()) return refuse(fmt::format("\"{}\" must be a string or a list", names[side]));
    std::string layout = text->get<std::string>();
    const Json* sums = field(row, "unreduced");
    const Json* axes = sums && sums->is_object() ? field(*sums, names[side]) : nullptr;
    if (!axes) return layout;
    if (!axes->is_array()) return refuse("\"unreduced\" must hold lists of axes");
    auto list = joined(*axes, "unreduced");
    if (!list) return list;
    const Json* extra = field(row, target ? "target_extra" : "source_extra");
    const Json* reduction = extra && extra->is_object() ? field(*extra, "reduction") : nullptr;
    std::string kind = reduction && reduction->is_string() ? reduction->get<std::string>() : "sum";
    if (kind == "sum") kind = "U";
    return layout + "{" + kind + ":(" + *list + ")}";
}

Result<std::string> array_of(const Json& row, const char* name) {
    const Json* shape = field(row, name);
    if (!shape) return fail(Code::unsupported, "the shape of the whole array is not said");
    if (!shape->is_array()) return refuse(fmt::format("\"{}\" must be a list", name));
    auto extents = joined(*shape, "shape");
    if (!extents) return extents;
    auto dtype = word(row, "dtype");
    if (!dtype) return dtype;
    // XLA calls signed integers s8, s16, ...
    if (dtype->size() > 1 && dtype->front() == 's') dtype->front() = 'i';
    return (dtype->empty() ? "f32" : *dtype) + "[" + *extents + "]";
}

Result<Json> own_fields(const Json& row) {
    auto named = word(row, "notation");
    if (!named) return tl::unexpected(named.error());
    const auto notation = parse_notation(named->empty() ? "jax" : *named);
    if (!notation) return tl::unexpected(notation.error());
    const bool foreign = *notation != Notation::jax;
    const bool sizes = *notation == Notation::hlo;
    auto mesh = mesh_of(row, "mesh", "device_ids", sizes);
    if (!mesh) return tl::unexpected(mesh.error());
    auto source = layout_of_side(row, false);
    if (!source) return tl::unexpected(source.error());
    auto target = layout_of_side(row, true);
    if (!target) return tl::unexpected(target.error());
    Json own = {{"mesh", *mesh}, {"source", *source}, {"target", *target}};
    if (field(row, "target_mesh") || field(row, "target_device_ids")) {
        auto other = mesh_of(row, "target_mesh", "target_device_ids", false);
        if (!other) return tl::unexpected(other.error());
        own["target_mesh"] = *other;
    }
    if (!named->empty()) own["notation"] = *named;
    if (foreign) {
        auto array = field(row, "array") ? word(row, "array") : array_of(row, "shape");
        if (!array) return tl::unexpected(array.error());
        own["array"] = *array;
        if (field(row, "out_shape")) {
            auto target_array = array_of(row, "out_shape");
            if (!target_array) return tl::unexpected(target_array.error());
            own["target_array"] = *target_array;
        }
    }
    if (const Json* options = field(row, "options")) {
        if (!options->is_object()) return refuse("\"options\" must be an object");
        for (const auto& [name, value] : options->items()) {
            if (value.is_structured()) return refuse("options are not nested");
            own["options"][name] = value;
        }
    }
    return own;
}

}  // namespace

Result<std::string> own_line(std::string_view line) {
    const Json row = Json::parse(line.begin(), line.end(), nullptr, false);
    if (!row.is_object()) return refuse("not JSON, or not an object");
    auto own = own_fields(row);
    if (!own) return tl::unexpected(own.error());
    if (const Json* id = field(row, "id"); id && !id->is_structured()) (*own)["id"] = *id;
    return own->dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace reshard::cli
