// Moves of whole tensors, for those who move layouts and no parts.
#include <algorithm>

#include <fmt/format.h>

#include "reshard/model/rules.hpp"
#include "src/base/printable.hpp"
#include "src/base/try.hpp"

namespace reshard {

namespace {

// The dimensions of a layout. Owners only say which devices own the tensor; own ones are the tensor's.
struct Dims {
    std::vector<Dim> owners;
    std::vector<Dim> own;
};

Dims dims_of(const ShardedTensor& tensor) {
    const std::vector<Dim>& all = tensor.layout->dims;
    if (all.size() <= tensor.shape.size()) return {{}, all};  // no owners; fewer: flattened
    Dims dims;
    for (const Dim& dim : all) {
        const bool own = dims.own.size() < tensor.shape.size() && dim.extent == tensor.shape[dims.own.size()];
        (own ? dims.own : dims.owners).push_back(dim);
    }
    return dims;
}

Layout joined(const Layout& layout, std::vector<Dim> owners, const std::vector<Dim>& own) {
    Layout made = layout;
    made.dims = std::move(owners);
    made.dims.insert(made.dims.end(), own.begin(), own.end());
    return made;
}

// Gives both layouts the owners of both ends. An owner of the other end is one index here.
Problem with_owners(const ShardedTensor& source, const ShardedTensor& target, const Dims& from, const Dims& to) {
    std::vector<Dim> before = from.owners;
    before.resize(from.owners.size() + to.owners.size(), Dim(1));
    std::vector<Dim> after(from.owners.size(), Dim(1));
    after.insert(after.end(), to.owners.begin(), to.owners.end());
    return {joined(*source.layout, std::move(before), from.own), joined(*target.layout, std::move(after), to.own)};
}

bool is_whole(const TensorPart& part) { return !part.box && part.order.empty(); }

}  // namespace

Result<std::vector<WholeMove>> whole_moves(const CheckpointMapping& mapping) {
    std::vector<WholeMove> all;
    std::vector<bool> made(mapping.targets.size(), false);
    for (std::size_t i = 0; i < mapping.moves.size(); ++i) {
        const auto [source, target] = mapping.ends[i];
        const ShardedTensor& from = mapping.sources[source];
        const ShardedTensor& to = mapping.targets[target];
        const Dims before = dims_of(from);
        const Dims after = dims_of(to);
        const bool same = from.shape == to.shape && before.own.size() == after.own.size();
        if (made[target] || !same || to.padded || !is_whole(mapping.moves[i].source) ||
            !is_whole(mapping.moves[i].target) || from.layout->dtype != to.layout->dtype)
            return fail(
                Code::unsupported,
                fmt::format("tensor {} is made of parts, or padded, cast or in another shape; whole tensors are "
                            "wanted",
                            in_quotes(to.name)));
        made[target] = true;
        all.push_back(
            {source, target, with_owners(from, to, before, after), before.owners.size() + after.owners.size()});
    }
    return all;
}

}  // namespace reshard
