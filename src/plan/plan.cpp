#include "reshard/plan.hpp"

#include <algorithm>
#include <cstdint>

#include "src/base/hash.hpp"

namespace reshard {

Result<void> validate(const Network& network) {
    Index inner = 0;  // outside the first block
    for (const Index block : network) {
        if (block <= inner || (inner > 0 && block % inner != 0))
            return fail(Code::mesh, "blocks of devices: each is larger than the one inside it, and a multiple of it");
        inner = block;
    }
    return {};
}

const Layout& layout_before(const Plan& plan, std::size_t index) {
    return index == 0 ? plan.source : plan.steps[index - 1].layout;
}

Index world_size(const Plan& plan) {
    Index devices = std::max(world_size(plan.source.mesh), world_size(plan.target.mesh));
    for (const Step& step : plan.steps) devices = std::max(devices, world_size(step.layout.mesh));
    return devices;
}

namespace {

struct PlanHash : Hash {
    using Hash::add;
    void add(const AtomList& atoms) {
        add(static_cast<Index>(atoms.size()));
        for (const Atom& atom : atoms) {
            add(atom.size);
            add(atom.stride);
        }
    }
    void add(const Layout& layout) {
        for (const Dim& dim : layout.dims) {
            add(dim.atoms);
            for (const Dim::Piece& piece : dim.pieces) {
                add(piece.end);
                add(piece.shard);
            }
            if (dim.balanced) add(-1);
        }
        add(layout.unreduced);
        // A sum adds nothing, so that plans from before there were others keep their number.
        if (!layout.unreduced.empty() && layout.reduction != Reduction::sum) add(static_cast<Index>(layout.reduction));
        if (layout.summed > 1) add(layout.summed);
    }
    // A mesh in order adds only its number of devices.
    void add(const Mesh& mesh) {
        add(device_count(mesh));
        if (mesh.devices.in_order()) return;
        for (const Index device : mesh.devices.devices()) add(device);
    }
};

}  // namespace

std::uint64_t fingerprint(const Plan& plan) {
    PlanHash hash;
    hash.add(static_cast<Index>(plan.source.dtype));
    hash.add(plan.source.mesh);
    const auto add_shape = [&](const Layout& layout) {
        hash.add(static_cast<Index>(layout.dims.size()));
        for (const Dim& dim : layout.dims) hash.add(dim.extent);
    };
    add_shape(plan.source);
    hash.add(plan.source);
    hash.add(plan.target);
    const auto add_mesh = [&](const Layout& layout) {
        if (!same_order(layout.mesh, plan.source.mesh)) hash.add(layout.mesh);
    };
    add_mesh(plan.target);
    hash.add(static_cast<Index>(plan.steps.size()));
    for (const Step& step : plan.steps) {
        hash.add(static_cast<Index>(step.kind));
        if (step.kind == StepKind::view) add_shape(step.layout);
        if (step.kind == StepKind::cast) hash.add(static_cast<Index>(step.layout.dtype));
        hash.add(step.layout);
        add_mesh(step.layout);
    }
    for (const Index block : plan.network) hash.add(block);
    return hash.value();
}

}  // namespace reshard
