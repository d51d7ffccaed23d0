#include "reshard/plan.hpp"

#include <cstdint>

namespace reshard {

const Layout& layout_before(const Plan& plan, std::size_t index) {
    return index == 0 ? plan.source : plan.steps[index - 1].layout;
}

namespace {

// FNV-1a over 64-bit words: small, stable, and enough to tell two plans of one program apart.
struct Hash {
    std::uint64_t state = 0xcbf29ce484222325u;
    void add(Index word) {
        for (int byte = 0; byte < 8; ++byte) {
            state ^= static_cast<std::uint64_t>(word) >> (8 * byte) & 0xff;
            state *= 0x100000001b3u;
        }
    }
    void add(const AtomList& atoms) {
        add(static_cast<Index>(atoms.size()));
        for (const Atom& atom : atoms) {
            add(atom.size);
            add(atom.stride);
        }
    }
    void add(const Layout& layout) {
        for (const Dim& dim : layout.dims) add(dim.atoms);
        add(layout.unreduced);
        // A sum adds nothing, so that plans from before there were others keep their number.
        if (!layout.unreduced.empty() && layout.reduction != Reduction::sum) add(static_cast<Index>(layout.reduction));
    }
};

}  // namespace

std::uint64_t fingerprint(const Plan& plan) {
    Hash hash;
    hash.add(static_cast<Index>(plan.source.dtype));
    hash.add(device_count(plan.source));
    hash.add(static_cast<Index>(plan.source.dims.size()));
    for (const Dim& dim : plan.source.dims) hash.add(dim.extent);
    hash.add(plan.source);
    hash.add(plan.target);
    hash.add(static_cast<Index>(plan.steps.size()));
    for (const Step& step : plan.steps) {
        hash.add(static_cast<Index>(step.kind));
        hash.add(step.layout);
    }
    return hash.state;
}

}  // namespace reshard
