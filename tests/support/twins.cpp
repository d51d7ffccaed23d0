// Values that break exactly one rule, and the reason that the error must give.
#include <algorithm>

#include "support/generators.hpp"

namespace reshard::test {

namespace {

template <class T>
Twin<T> twin(const char* invariant, T value, Code code, const char* fragment) {
    return {invariant, std::move(value), code, fragment};
}

/// A kind of step that can never lead from the one layout to the other.
StepKind impossible(StepKind kind) {
    switch (kind) {
        case StepKind::slice:
        case StepKind::permute:
            return StepKind::all_gather;
        case StepKind::reduce_scatter:
            return StepKind::all_reduce;
        case StepKind::all_reduce:
            return StepKind::reduce_scatter;
        case StepKind::exchange:
            return StepKind::zero_fill;
        default:
            return StepKind::slice;
    }
}

}  // namespace

rc::Gen<Twin<Mesh>> broken_meshes() {
    return rc::gen::exec([] {
        std::vector<Axis> axes = *meshes(64);
        axes.insert(axes.begin(), {"v", *between<Index>(1, 4)});
        const auto which = *between<std::size_t>(0, axes.size());
        switch (*between(0, 5)) {
            case 0:
                axes.push_back({axes[which].name, 2});
                return twin("axis names differ", Mesh(axes), Code::mesh, "two axes named");
            case 1:
                axes[which].size = *between<Index>(-3, 1);
                return twin("sizes are at least 1", Mesh(axes), Code::mesh, "at least 1");
            case 2:
                axes[which].name = "";
                return twin("names are not empty", Mesh(axes), Code::mesh, "not an axis name");
            case 3:
                axes[which].name = *rc::gen::element<std::string>("a b", "(", "x,y", "1=", ":", "\n");
                return twin("names are names", Mesh(axes), Code::mesh, "not an axis name");
            default:
                axes.push_back({"big", Index{1} << 62});
                axes.push_back({"more", 4});
                return twin("devices fit 64 bits", Mesh(axes), Code::overflow, "64 bits");
        }
    });
}

rc::Gen<Twin<Layout>> broken_layouts() {
    return rc::gen::exec([] {
        const Spec spec = *rc::gen::suchThat(layouts(), [](const Spec& drawn) {
            return std::ranges::any_of(drawn.dims, [](const SpecDim& dim) { return shards(dim) > 1; });
        });
        Layout layout = layout_of(spec);
        const auto dim = static_cast<std::size_t>(
            std::ranges::find_if(layout.dims, [](const Dim& d) { return !d.atoms.empty(); }) - layout.dims.begin());
        const Atom atom = layout.dims[dim].atoms[0];
        switch (*between(0, 9)) {
            case 0:
                layout.dims.push_back({4, {atom}});
                return twin("no axis shards two dimensions", layout, Code::layout, "twice");
            case 1:
                layout.unreduced = as_set({atom});
                return twin("no axis shards and sums", layout, Code::layout, "twice");
            case 2:
                layout.dims[dim].extent = -1 - layout.dims[dim].extent;
                return twin("extents are not negative", layout, Code::layout, "extent -");
            case 3:
                layout.dims[dim].atoms.push_back({1, 1});
                return twin("atoms are canonical", layout, Code::layout, "canonical");
            case 4:
                layout.dims[dim].atoms = {{7, atom.stride}};
                return twin("atoms are digits of the device number", layout, Code::layout, "no digit");
            case 5:
                layout.dims.push_back({Index{1} << 62, {}});
                layout.dims.push_back({Index{1} << 62, {}});
                return twin("the array fits 64 bits", layout, Code::overflow, "64 bits");
            case 6:
                layout.dims[dim].atoms = {};
                layout.unreduced = {atom};
                layout.dtype = DType::f8_e5m2;
                return twin("bytes are not added", layout, Code::unsupported, "cannot be reduced");
            case 7:
                layout.mesh.axes[0].size = 0;
                return twin("the mesh is one", layout, Code::mesh, "at least 1");
            default:
                layout.unreduced = {{1, 1}};
                return twin("unreduced atoms are a canonical set", layout, Code::layout, "canonical set");
        }
    });
}

rc::Gen<Twin<Plan>> broken_plans() {
    return rc::gen::exec([] {
        const Walk walk = *rc::gen::suchThat(walks(), [](const Walk& drawn) { return !drawn.source.dims.empty(); });
        Plan plan = plan_of(walk);
        const auto which = *between<std::size_t>(0, plan.steps.size());
        Step& step = plan.steps[which];
        switch (*between(0, 8)) {
            case 0:
                step.kind = impossible(step.kind);
                return twin("each step is of its kind", plan, Code::step, "not a ");
            case 1:
                plan.steps.insert(plan.steps.begin() + static_cast<std::ptrdiff_t>(which), step);
                return twin("each step moves", plan, Code::step, "nothing changes");
            case 2:
                plan.target.dtype = DType::f16;
                return twin("one element type", plan, Code::mismatch, "element types differ");
            case 3:
                for (Dim& dim : step.layout.dims) dim.extent *= 2;
                step.layout.dims[0].extent += 1;
                return twin("one shape", plan, Code::mismatch, "shapes differ in dimension 0");
            case 4:
                step.layout.dims.push_back({1, {}});
                return twin("one rank", plan, Code::mismatch, "ranks differ");
            case 5:
                step.layout.mesh.axes.push_back({"extra", 2});
                step.kind = StepKind::all_gather;  // an exchange may change the mesh
                return twin("one order of the devices", plan, Code::step, "the order of the devices changes");
            case 6: {
                // The steps do not arrive at this target.
                plan.target = layout_of(walk.source);
                if (equivalent(plan.target, plan.steps.back().layout)) plan.steps.pop_back();
                if (plan.steps.empty() || equivalent(plan.target, plan.steps.back().layout)) {
                    plan = plan_of(walk);
                    plan.steps[which].kind = impossible(plan.steps[which].kind);
                    return twin("each step is of its kind", plan, Code::step, "not a ");
                }
                return twin("the plan arrives", plan, Code::plan, "not at its target");
            }
            default:
                step.layout.dims[0].atoms = {{1, 1}};
                return twin("layouts on the way are valid", plan, Code::layout, "step ");
        }
    });
}

}  // namespace reshard::test
