// A tile program as a Python module for PyTorch: functional collectives over process groups.
#include <algorithm>

#include <fmt/ranges.h>

#include "src/base/try.hpp"
#include "src/emit/text.hpp"
#include "src/tables/dtypes.hpp"

namespace reshard {

namespace {

class TorchText {
public:
    explicit TorchText(const TileProgram& program)
        : program_(program), mesh_(program.source.mesh), dtype_(program.source.dtype) {}

    Result<std::string> text() {
        RESHARD_TRY(const auto& body, move());
        std::string made = fmt::format(
            "\"\"\"{}.\n\nRank i is device i. Written by `reshard emit --to torch`.\"\"\"\n\n", headline(program_));
        if (body.find("torch.") != std::string::npos) made += "import torch\n";
        made += "import torch.distributed as dist\n";
        if (body.find("funcol.") != std::string::npos)
            made += "import torch.distributed._functional_collectives as funcol\n";
        if (names_axes_) made += "from torch.distributed.device_mesh import init_device_mesh\n";
        return made + constants() + "\n\n" + connect() + "\n\n" + body;
    }

private:
    /// The ranks of each group in program order, and the place of each member in ascending order of rank, which PyTorch
    /// uses.
    struct Group {
        std::size_t number = 0;        ///< its place among the groups of connect
        std::vector<Index> ascending;  ///< ascending[k]: the member whose rank is the k-th
    };

    std::string constants() const { return constants_.empty() ? "" : "\n" + constants_; }

    std::string connect() const {
        std::string text =
            fmt::format("def connect({}):\n    \"\"\"The groups of `move`, made once, by all ranks together.\"\"\"\n",
                        names_axes_ ? "device=\"cuda\"" : "");
        if (names_axes_) {
            std::vector<Index> sizes;
            std::vector<std::string> names;
            for (const Axis& axis : mesh_.axes) {
                sizes.push_back(axis.size);
                names.push_back(fmt::format("\"{}\"", axis.name));
            }
            text += fmt::format("    mesh = init_device_mesh(device, {}, mesh_dim_names=({}{}))\n", python_tuple(sizes),
                                fmt::join(names, ", "), names.size() == 1 ? "," : "");
        }
        text += "    return [\n";
        for (const std::string& group : groups_) text += fmt::format("        {},\n", group);
        return text + "    ]\n";
    }

    Result<Group> group(const Operation& operation) {
        std::vector<std::vector<Index>> ranks = operation.groups;
        Group made;
        for (auto& members : ranks) {
            for (Index& member : members) member = device_at(mesh_, member);
            std::vector<Index> order(members.size());
            for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<Index>(i);
            std::ranges::sort(order, {}, [&](Index i) { return members[static_cast<std::size_t>(i)]; });
            if (!made.ascending.empty() && order != made.ascending)
                return fail(Code::unsupported, "the ranks of a group stand in another order in each group");
            made.ascending = std::move(order);
            std::ranges::sort(members);
        }
        std::string text =
            fmt::format("dist.new_subgroups_by_enumeration({})[0]", python_groups(ranks, "            "));
        if (ranks.size() == 1 && ranks[0].back() + 1 == static_cast<Index>(ranks[0].size())) text = "dist.group.WORLD";
        const auto axes = mesh_.devices.in_order() && !operation.digits.empty() ? whole_axes(mesh_, operation.digits[0])
                                                                                : std::nullopt;
        if (axes && axes->size() == 1) {
            text = fmt::format("mesh.get_group(\"{}\")", axes->front());
            names_axes_ = true;
        }
        const auto known = std::ranges::find(groups_, text);
        made.number = static_cast<std::size_t>(known - groups_.begin());
        if (known == groups_.end()) groups_.push_back(std::move(text));
        return made;
    }

    Result<std::string> move() {
        std::string body;
        const std::vector<Operation>& operations = program_.operations;
        std::string views;
        for (std::size_t i = 0; i < operations.size(); ++i) {
            views = python_views(operations, i, "permute");
            if (i == operations.size()) break;
            // A permuted view is copied before it is sent. A reshaped one is already a copy.
            const bool permuted = !views.empty() && operations[i - 1].kind == OperationKind::transpose;
            if (permuted && is_collective(operations[i].kind)) views += ".contiguous()";
            const bool narrowed = views.empty() && i > 0 && operations[i - 1].kind == OperationKind::slice;
            if (narrowed && is_collective(operations[i].kind)) views += ".contiguous()";
            if (!views.empty()) body += fmt::format("    tile = tile{}\n", views);
            views.clear();
            RESHARD_TRY(const auto& lines, line(operations[i]));
            body += lines;
        }
        body += fmt::format("    return tile{}\n", views);
        const std::string_view index = mesh_.devices.in_order() ? "dist.get_rank()" : "devices.index(dist.get_rank())";
        const std::string position = uses_position_ ? fmt::format("    position = {}\n", index) : "";
        if (uses_position_ && !mesh_.devices.in_order())
            constants_ += fmt::format("devices = [{}]\n", fmt::join(mesh_.devices.devices(), ", "));
        return fmt::format("def move(tile, groups):\n    \"\"\"This rank's tile, {} to {}.\"\"\"\n{}{}",
                           shape_text(program_.source.dtype, extents_of(program_.source)),
                           shape_text(program_.target.dtype, extents_of(program_.target)), position, body);
    }

    std::string start(const Operation& operation, std::size_t dim) {
        uses_position_ = true;
        if (!operation.digits.empty())
            return python_start(operation.digits[dim], std::min(operation.input[dim], operation.output[dim]),
                                "position");
        std::vector<Index> table;
        for (const auto& starts : operation.starts) table.push_back(starts[dim]);
        return fmt::format("[{}][position]", listed(table));
    }

    // .narrow(0, position * 8, 8) for each dimension that is cut.
    std::string narrowed(const Operation& operation) {
        std::string text;
        for (std::size_t dim = 0; dim < operation.input.size(); ++dim)
            if (operation.input[dim] != operation.output[dim])
                text += fmt::format(".narrow({}, {}, {})", dim, start(operation, dim),
                                    std::min(operation.input[dim], operation.output[dim]));
        return text;
    }

    std::string neutral(Combine combine) const {
        if (combine == Combine::sum || combine == Combine::prod) return combine == Combine::sum ? "0" : "1";
        const bool lowest = combine == Combine::max;
        if (dtype_ == DType::boolean) return lowest ? "False" : "True";
        if (is_floating(dtype_)) return lowest ? "-float(\"inf\")" : "float(\"inf\")";
        return fmt::format("torch.iinfo(tile.dtype).{}", lowest ? "min" : "max");
    }

    static bool in_order(const Group& group) { return std::ranges::is_sorted(group.ascending); }

    // Reorders blocks of dimension 0: block i becomes the former block order[i].
    static std::string reordered(const std::vector<Index>& order) {
        return fmt::format(".unflatten(0, ({}, -1))[[{}]].flatten(0, 1)", order.size(), listed(order));
    }

    static std::vector<Index> inverse(const std::vector<Index>& order) {
        std::vector<Index> back(order.size());
        for (std::size_t i = 0; i < order.size(); ++i) back[static_cast<std::size_t>(order[i])] = static_cast<Index>(i);
        return back;
    }

    static std::string assigned(const std::string& expression) { return fmt::format("    tile = {}\n", expression); }

    Result<std::string> line(const Operation& operation) {
        switch (operation.kind) {
            case OperationKind::slice:
                return assigned("tile" + narrowed(operation));
            case OperationKind::update_slice:
                return fmt::format("    whole = tile.new_full({}, {})\n    whole{}.copy_(tile)\n    tile = whole\n",
                                   python_tuple(operation.output), neutral(operation.combine), narrowed(operation));
            case OperationKind::reorder:
                return assigned(fmt::format("torch.cat([tile[:, begin:end] for begin, end in ({})], 1)",
                                            python_runs(operation.runs)));
            case OperationKind::mask:
                uses_position_ = true;
                return fmt::format("    if position not in {{{}}}:\n        tile = torch.full_like(tile, {})\n",
                                   listed(operation.keeps), neutral(operation.combine));
            case OperationKind::scale: {
                std::string scaled = "tile";
                if (operation.factor.times != 1) scaled += fmt::format(" * {}", operation.factor.times);
                if (operation.factor.over != 1) scaled += fmt::format(" / {}", operation.factor.over);
                return assigned(scaled);
            }
            case OperationKind::cast:  // a permuted view becomes dense, since a collective may be next
                dtype_ = operation.dtype;
                return assigned(fmt::format("tile.to(torch.{}, memory_format=torch.contiguous_format)",
                                            tables::row(dtype_).long_name));
            case OperationKind::reduce:
                return assigned(operation.combine == Combine::max    ? "tile.amax(0)"
                                : operation.combine == Combine::min  ? "tile.amin(0)"
                                : operation.combine == Combine::prod ? "tile.prod(0, dtype=tile.dtype)"
                                                                     : "tile.sum(0, dtype=tile.dtype)");
            case OperationKind::permute: {
                std::vector<Index> targets(operation.pairs.size());
                for (const SourceTargetPair& pair : operation.pairs) {
                    const auto source = static_cast<std::size_t>(device_at(mesh_, pair.source));
                    if (source >= targets.size())
                        return fail(Code::unsupported,
                                    "functional collectives permute all ranks, and some are not in the mesh");
                    targets[source] = device_at(mesh_, pair.target);
                }
                // The call works on vectors: it splits dimension 0 by numbers of elements.
                const bool vector = operation.input.size() == 1;
                const std::string back = vector ? "" : fmt::format(".reshape({})", listed(operation.input));
                return assigned(fmt::format("funcol.permute_tensor(tile{}, [{}], dist.group.WORLD){}",
                                            vector ? "" : ".flatten()", listed(targets), back));
            }
            default:
                return collective(operation);
        }
    }

    Result<std::string> collective(const Operation& operation) {
        RESHARD_TRY(const auto& made, group(operation));
        const std::string first = in_order(made) ? "" : assigned("tile" + reordered(made.ascending));
        const std::string last = in_order(made) ? "" : assigned("tile" + reordered(inverse(made.ascending)));
        const std::string over = fmt::format("groups[{}]", made.number);
        switch (operation.kind) {
            case OperationKind::all_gather:
                return assigned(fmt::format("funcol.all_gather_tensor(tile, 0, {})", over)) + last;
            case OperationKind::all_to_all:
                return first + assigned(fmt::format("funcol.all_to_all_single(tile, None, None, {})", over)) + last;
            case OperationKind::reduce_scatter:
                return first + assigned(fmt::format("funcol.reduce_scatter_tensor(tile, \"sum\", 0, {})", over));
            default:
                return assigned(fmt::format("funcol.all_reduce(tile, \"{}\", {})",
                                            operation.combine == Combine::max   ? "max"
                                            : operation.combine == Combine::min ? "min"
                                                                                : "sum",
                                            over));
        }
    }

    const TileProgram& program_;
    const Mesh& mesh_;
    DType dtype_;  // of the tile, where the text is written
    std::vector<std::string> groups_;
    std::string constants_;
    bool names_axes_ = false;
    bool uses_position_ = false;
};

}  // namespace

Result<std::string> torch_text(const TileProgram& program) { return TorchText(program).text(); }

}  // namespace reshard
