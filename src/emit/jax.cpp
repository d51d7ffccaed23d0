// A tile program as Python for JAX, the only lowering to it: a module of its own, or one function inside a shard_map.
#include <algorithm>

#include <fmt/ranges.h>

#include "reshard/planner/view.hpp"
#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "src/emit/text.hpp"
#include "src/tables/dtypes.hpp"

namespace reshard {

namespace {

std::string quoted(const std::vector<std::string>& names) {
    std::vector<std::string> all;
    for (const std::string& one : names) all.push_back(fmt::format("\"{}\"", one));
    if (all.size() == 1) return all[0];
    return fmt::format("({})", fmt::join(all, ", "));
}

// True for the types that JAX has only with jax_enable_x64.
bool wide(DType dtype) { return size_of(dtype) == (is_complex(dtype) ? 16 : 8); }

class JaxText {
public:
    JaxText(const TileProgram& program, Mesh mesh)
        : program_(program), mesh_(std::move(mesh)), dtype_(program.source.dtype) {
        std::vector<std::string> names;
        for (const Axis& axis : mesh_.axes) names.push_back(axis.name);
        all_axes_ = quoted(names);
    }

    std::string text() {
        const std::string body = move();
        std::string made = fmt::format("\"\"\"{}.\n\n{}{}Written by `reshard emit --to jax`.\"\"\"\n\n",
                                       headline(program_), summands(), digits());
        made += "import jax\n";
        if (uses_numpy_) made += "import jax.numpy as jnp\n";
        if (!mesh_.devices.in_order()) made += "import numpy as np\n";
        if (body.find("lax.") != std::string::npos) made += "from jax import lax\n";
        made += fmt::format("from jax.sharding import AxisType, {}NamedSharding, PartitionSpec as P\n",
                            mesh_.devices.in_order() ? "" : "Mesh, ");
        if (wide(program_.source.dtype) || wide(program_.target.dtype))
            made += "\njax.config.update(\"jax_enable_x64\", True)\n";
        made += "\n" + mesh_line();
        made += fmt::format("source = NamedSharding(mesh, {})\n", spec(program_.source));
        made += fmt::format("target = NamedSharding(mesh, {})\n", spec(program_.target));
        made += constants_.empty() ? "" : "\n" + constants_;
        made += "\n\n" + body;
        const bool pieces = has_pieces(program_.source) || has_pieces(program_.target);
        return made + fmt::format(
                          "\n\nreshard = jax.jit(\n    jax.shard_map({}mesh=mesh, in_specs=source.spec, "
                          "out_specs=target.spec, check_vma=False)\n)\n",
                          pieces ? fmt::format("\n        {},\n        ", reshaped_move()) : "move, ");
    }

    // Names no axis of a mesh: groups, pairs and starts count devices along `axes`.
    std::string function() {
        flat_ = true;
        all_axes_ = "axes";
        if (!mesh_.devices.in_order()) {
            std::vector<Index> positions;
            for (const Index device : mesh_.devices.ascending()) positions.push_back(*mesh_.devices.position(device));
            constants_ = fmt::format("positions = np.array([{}], np.int32)\n", listed(positions));
        }
        const std::string body = move();
        return fmt::format("import jax.numpy as jnp\nimport numpy as np\nfrom jax import lax\n\n{}\n\n{}", constants_,
                           body);
    }

private:
    std::string summands() const {
        if (program_.source.unreduced.empty() && program_.target.unreduced.empty()) return "";
        return "The summands of an unreduced end are stacked in a leading dimension of the array.\n\n";
    }

    // The digits of a dimension are cut evenly, and so are its indices in the order of shards.
    std::string digits() const {
        std::vector<std::string> ends;
        for (const Layout* end : {&program_.source, &program_.target})
            if (has_pieces(*end)) ends.push_back(fmt::format("{} as {}", format(*end), format(seen(*end))));
        if (ends.empty()) return "";
        return fmt::format(
            "No PartitionSpec cuts a dimension in pieces. `reshard` takes and returns arrays with the same "
            "tiles:\n{}.\n\n",
            fmt::join(ends, ",\n"));
    }

    static Layout seen(const Layout& end) { return in_order_of_shards(in_digits(end).value_or(end)); }

    std::string reshaped_move() const {
        const auto reshaped = [](const Layout& end, const Layout& as) {
            std::vector<Index> shape = extents_of(as);
            if (!end.unreduced.empty()) shape.insert(shape.begin(), 1);
            return has_pieces(end) ? fmt::format(".reshape{}", python_tuple(shape)) : "";
        };
        return fmt::format("lambda tile: move(tile{}){}", reshaped(program_.source, program_.source),
                           reshaped(program_.target, seen(program_.target)));
    }

    std::string mesh_line() const {
        std::vector<Index> sizes;
        std::vector<std::string> names;
        for (const Axis& axis : mesh_.axes) {
            sizes.push_back(axis.size);
            names.push_back(fmt::format("\"{}\"", axis.name));
        }
        const std::string axes = fmt::format("({}{})", fmt::join(names, ", "), names.size() == 1 ? "," : "");
        const std::string types = fmt::format("axis_types=(AxisType.Auto,) * {}", names.size());
        if (mesh_.devices.in_order())
            return fmt::format("mesh = jax.make_mesh({}, {}, {})\n", python_tuple(sizes), axes, types);
        return fmt::format("devices = np.array(jax.devices())[[{}]]\nmesh = Mesh(devices.reshape{}, {}, {})\n",
                           fmt::join(mesh_.devices.devices(), ", "), python_tuple(sizes), axes, types);
    }

    // The mesh names every list of atoms at both ends.
    std::string spec(const Layout& end) const {
        std::vector<std::string> entries;
        const auto entry = [&](const AtomList& atoms) {
            entries.push_back(atoms.empty() ? "None" : quoted(*whole_axes(mesh_, atoms)));
        };
        if (!end.unreduced.empty()) entry(end.unreduced);
        for (const Dim& dim : seen(end).dims) entry(dim.atoms);
        return fmt::format("P({})", fmt::join(entries, ", "));
    }

    std::string move() {
        std::string body;
        if (!program_.source.unreduced.empty()) body += "    tile = tile[0]\n";
        const std::vector<Operation>& operations = program_.operations;
        std::string views;
        for (std::size_t i = 0; i < operations.size();) {
            views = python_views(operations, i, "transpose");
            if (i == operations.size()) break;
            if (!views.empty()) body += fmt::format("    tile = tile{}\n", views);
            views.clear();
            body += fmt::format("    tile = {}{}\n", line(operations[i]), shape_note(operations[i]));
            ++i;
        }
        if (!program_.target.unreduced.empty()) views += "[None]";
        body += fmt::format("    return tile{}\n", views);
        std::string position = fmt::format("lax.axis_index({})", all_axes_);
        if (flat_ && !mesh_.devices.in_order()) position = fmt::format("jnp.asarray(positions)[{}]", position);
        position = uses_position_ ? fmt::format("    position = {}\n", position) : "";
        return fmt::format("def move(tile{}):\n    \"\"\"One device's tile, {} to {}.\"\"\"\n{}{}",
                           flat_ ? ", axes" : "", shape_text(program_.source.dtype, extents_of(program_.source)),
                           shape_text(program_.target.dtype, extents_of(program_.target)), position, body);
    }

    static std::string shape_note(const Operation& operation) {
        return operation.input == operation.output ? "" : fmt::format("  # [{}]", fmt::join(operation.output, ","));
    }

    std::string constant(std::string_view kind, std::string value) {
        const std::string made = fmt::format("{}_{}", kind, ++count_);
        constants_ += fmt::format("{} = {}\n", made, value);
        return made;
    }

    std::optional<std::vector<std::string>> axes_of(const AtomList& digits) const {
        return flat_ ? std::nullopt : whole_axes(mesh_, digits);
    }

    // Positions as devices, if the surrounding mesh counts devices.
    std::vector<std::vector<Index>> placed(std::vector<std::vector<Index>> lists) const {
        for (auto& list : lists)
            for (Index& position : list) position = flat_ ? mesh_.devices.device(position) : position;
        return lists;
    }

    // The group as whole axes if possible, otherwise as members among all axes.
    std::string group(const Operation& operation, std::string& more) {
        if (!operation.digits.empty())
            if (const auto axes = axes_of(operation.digits[0])) return quoted(*axes);
        more =
            fmt::format(", axis_index_groups={}", constant("groups", python_groups(placed(operation.groups), "    ")));
        return all_axes_;
    }

    std::string position() {
        uses_position_ = true;
        return "position";
    }

    std::string start(const Operation& operation, std::size_t dim) {
        const Index part = std::min(operation.input[dim], operation.output[dim]);
        if (operation.digits.empty()) {
            std::vector<Index> table;
            for (const auto& starts : operation.starts) table.push_back(starts[dim]);
            if (std::ranges::count(table, 0) == static_cast<Index>(table.size())) return "0";
            uses_numpy_ = true;
            // A function that JAX traces must not make a jnp array outside, so its tables are numpy's.
            if (!flat_)
                return fmt::format("{}[{}]", constant("starts", fmt::format("jnp.array([{}])", listed(table))),
                                   position());
            const std::string made = constant("starts", fmt::format("np.array([{}], np.int32)", listed(table)));
            return fmt::format("jnp.asarray({})[{}]", made, position());
        }
        const AtomList& digits = operation.digits[dim];
        if (digits.empty()) return "0";
        if (const auto axes = axes_of(digits)) {
            const std::string index = fmt::format("lax.axis_index({})", quoted(*axes));
            return part == 1 ? index : fmt::format("{} * {}", index, part);
        }
        return python_start(digits, part, position());
    }

    // The dimensions whose extents differ between input and output.
    static std::vector<std::size_t> cut_dims(const Operation& operation) {
        std::vector<std::size_t> dims;
        for (std::size_t i = 0; i < operation.input.size(); ++i)
            if (operation.input[i] != operation.output[i]) dims.push_back(i);
        return dims;
    }

    std::string all_starts(const Operation& operation) {
        std::vector<std::string> starts;
        for (std::size_t i = 0; i < operation.input.size(); ++i) starts.push_back(start(operation, i));
        return fmt::format("({}{})", fmt::join(starts, ", "), starts.size() == 1 ? "," : "");
    }

    std::string neutral(Combine combine) {
        if (combine == Combine::sum) return dtype_ == DType::boolean ? "False" : "0";
        if (combine == Combine::prod) return dtype_ == DType::boolean ? "True" : "1";
        const bool lowest = combine == Combine::max;
        if (dtype_ == DType::boolean) return lowest ? "False" : "True";
        uses_numpy_ = true;
        if (is_floating(dtype_)) return lowest ? "-jnp.inf" : "jnp.inf";
        return fmt::format("jnp.iinfo(tile.dtype).{}", lowest ? "min" : "max");
    }

    std::string filled(const Operation& operation) {
        uses_numpy_ = true;
        return fmt::format("jnp.full({}, {}, tile.dtype)", python_tuple(operation.output), neutral(operation.combine));
    }

    std::string tiled(std::string_view call, std::string_view places, const Operation& operation) {
        std::string more;
        const std::string axes = group(operation, more);
        return fmt::format("lax.{}(tile, {}, {}, tiled=True{})", call, axes, places, more);
    }

    std::string line(const Operation& operation) {
        switch (operation.kind) {
            case OperationKind::slice:
            case OperationKind::update_slice: {
                const bool cuts = operation.kind == OperationKind::slice;
                const auto dims = cut_dims(operation);
                const std::string call = cuts ? "slice" : "update_slice";
                const std::string into = cuts ? "" : filled(operation) + ", ";
                if (dims.size() != 1)
                    return fmt::format("lax.dynamic_{}({}tile, {}{})", call, into, all_starts(operation),
                                       cuts ? ", " + python_tuple(operation.output) : "");
                const std::size_t dim = dims[0];
                return fmt::format("lax.dynamic_{}_in_dim({}tile, {}, {}axis={})", call, into, start(operation, dim),
                                   cuts ? fmt::format("{}, ", operation.output[dim]) : "", dim);
            }
            case OperationKind::reorder:
                uses_numpy_ = true;
                return fmt::format("jnp.concatenate([tile[:, begin:end] for begin, end in ({})], axis=1)",
                                   python_runs(operation.runs));
            case OperationKind::mask: {
                uses_numpy_ = true;
                std::string kept = fmt::format("jnp.isin({}, {})", "position",
                                               fmt::format("jnp.array([{}])", listed(operation.keeps)));
                const auto axes = operation.digits.empty() ? std::nullopt : axes_of(operation.digits[0]);
                if (axes)
                    kept = fmt::format("lax.axis_index({}) == 0", quoted(*axes));
                else
                    uses_position_ = true;
                return fmt::format("jnp.where({}, tile, {})", kept, neutral(operation.combine));
            }
            case OperationKind::scale: {
                std::string scaled = "tile";
                if (operation.factor.times != 1) scaled += fmt::format(" * {}", operation.factor.times);
                if (operation.factor.over != 1) scaled += fmt::format(" / {}", operation.factor.over);
                return scaled;
            }
            case OperationKind::cast:
                uses_numpy_ = true;
                dtype_ = operation.dtype;
                return fmt::format("tile.astype(jnp.{})", tables::row(dtype_).long_name);
            case OperationKind::reduce: {
                const std::string_view by = operation.combine == Combine::max    ? "max(axis=0)"
                                            : operation.combine == Combine::min  ? "min(axis=0)"
                                            : operation.combine == Combine::prod ? "prod(axis=0, dtype=tile.dtype)"
                                                                                 : "sum(axis=0, dtype=tile.dtype)";
                return fmt::format("tile.{}", by);
            }
            case OperationKind::all_gather:
                return tiled("all_gather", "axis=0", operation);
            case OperationKind::all_to_all:
                return tiled("all_to_all", "split_axis=0, concat_axis=0", operation);
            case OperationKind::reduce_scatter:
                return tiled("psum_scatter", "scatter_dimension=0", operation);
            case OperationKind::all_reduce: {
                std::string more;
                const std::string axes = group(operation, more);
                const std::string_view by = operation.combine == Combine::max   ? "pmax"
                                            : operation.combine == Combine::min ? "pmin"
                                                                                : "psum";
                return fmt::format("lax.{}(tile, {}{})", by, axes, more);
            }
            case OperationKind::permute: {
                std::vector<std::vector<Index>> pairs;
                for (const SourceTargetPair& pair : operation.pairs) pairs.push_back({pair.source, pair.target});
                const std::string list = constant("pairs", python_groups(placed(std::move(pairs)), "    "));
                return fmt::format("lax.ppermute(tile, {}, {})", all_axes_, list);
            }
            default:
                return "tile";  // reshape and transpose are views
        }
    }

    const TileProgram& program_;
    Mesh mesh_;
    DType dtype_;  // of the tile, where the text is written
    std::string all_axes_;
    std::string constants_;
    int count_ = 0;
    bool flat_ = false;  // the text is a function for any mesh
    bool uses_numpy_ = false;
    bool uses_position_ = false;
};

}  // namespace

Result<std::string> jax_text(const TileProgram& program) {
    RESHARD_TRY(auto& mesh, whole_axes_mesh(program));
    if (mesh.axes.empty()) mesh.axes.push_back({"device", 1});
    return JaxText(program, std::move(mesh)).text();
}

std::string jax_function(const TileProgram& program) { return JaxText(program, program.source.mesh).function(); }

}  // namespace reshard
