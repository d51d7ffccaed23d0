// Layouts from names: JAX's partition spec and PyTorch's placements.
#include <fmt/format.h>

#include "reshard/layout.hpp"
#include "src/base/try.hpp"
#include "src/notations/chunks.hpp"
#include "src/text/scanner.hpp"

namespace reshard {

namespace {

Result<AtomList> atoms_of(const Mesh& mesh, const std::vector<std::string>& axes) {
    AtomList atoms;
    for (const std::string& axis : axes) {
        notation::Scanner scanner(axis);
        RESHARD_TRY(auto& atom, notation::scan_axis(scanner, mesh));
        RESHARD_CHECK(scanner.expect_end());
        atoms.push_back(atom);
    }
    // Canonical form would hide an axis used twice in one dimension.
    if (!disjoint(atoms)) return fail(Code::layout, "an axis, or parts of it that overlap, is used twice");
    return atoms;
}

}  // namespace

Result<Layout> make_layout(const Mesh& mesh, DType dtype, std::vector<Index> shape, const P& spec,
                           const std::vector<std::string>& unreduced) {
    RESHARD_CHECK(validate(mesh));
    if (spec.size() > shape.size())
        return fail(Code::layout, fmt::format("the partition spec has {} entries, the shape {} dimensions", spec.size(),
                                              shape.size()));
    Layout layout{dtype, mesh, {}, {}};
    for (std::size_t i = 0; i < shape.size(); ++i) {
        RESHARD_TRY(auto& atoms, atoms_of(mesh, i < spec.size() ? spec[i].axes : std::vector<std::string>{}));
        layout.dims.push_back({shape[i], canonical(std::move(atoms))});
    }
    RESHARD_TRY(auto& atoms, atoms_of(mesh, unreduced));
    layout.unreduced = as_set(std::move(atoms));
    RESHARD_CHECK(validate(layout));
    return layout;
}

Result<Layout> from_placements(const Mesh& mesh, DType dtype, std::vector<Index> shape,
                               const std::vector<Placement>& placements) {
    if (placements.size() != mesh.axes.size())
        return fail(Code::layout,
                    fmt::format("{} placements for a mesh of {} axes", placements.size(), mesh.axes.size()));
    P spec(shape.size());
    std::vector<std::string> unreduced;
    for (std::size_t i = 0; i < placements.size(); ++i) {
        if (placements[i].kind == Placement::Kind::partial) unreduced.push_back(mesh.axes[i].name);
        if (placements[i].kind != Placement::Kind::shard) continue;
        if (placements[i].dim >= shape.size())
            return fail(Code::layout, fmt::format("Shard({}) of an array of rank {}", placements[i].dim, shape.size()));
        spec[placements[i].dim].axes.push_back(mesh.axes[i].name);
    }
    auto layout = make_layout(mesh, dtype, std::move(shape), spec, unreduced);
    if (!layout) return layout;
    // torch.chunk splits axis by axis; that is ceil-div at once only while every split but the last is even.
    for (std::size_t d = 0; d < layout->dims.size(); ++d) {
        std::vector<Index> factors;
        for (std::size_t i = 0; i < placements.size(); ++i)
            if (placements[i] == Shard(d)) factors.push_back(mesh.axes[i].size);
        Dim& dim = layout->dims[d];
        // A dimension that divides, or that one axis cuts, is a ceil-div cut.
        if (dim.extent % shard_count(dim) == 0 || factors.size() < 2) continue;
        if (shard_count(dim) > notation::chunks_max)
            return fail(
                Code::unsupported,
                fmt::format("dimension {} of {} indices is cut into {} chunks that do not divide it; at most {} "
                            "are listed",
                            d, dim.extent, shard_count(dim), notation::chunks_max));
        dim = chunked_per_axis(dim.extent, dim.atoms, factors);
    }
    return layout;
}

}  // namespace reshard
