// Runs each operation by its definition, element by element.
#include "reshard/emit/interpret.hpp"

#include <algorithm>
#include <limits>
#include <span>

#include <fmt/format.h>

#include "src/base/try.hpp"
#include "src/emit/order.hpp"

namespace reshard {

namespace {

using Values = std::vector<std::int64_t>;

std::size_t count_of(const std::vector<Index>& shape) { return static_cast<std::size_t>(elements_of(shape)); }

// Calls visit(index, position) for each element in row-major order.
template <class Visit>
void for_each(const std::vector<Index>& shape, const Visit& visit) {
    std::vector<Index> index(shape.size());
    for (Index position = 0; position < elements_of(shape); ++position) {
        Index rest = position;
        for (std::size_t i = shape.size(); i-- > 0; rest /= shape[i]) index[i] = rest % shape[i];
        visit(index, static_cast<std::size_t>(position));
    }
}

std::size_t at(const std::vector<Index>& shape, const std::vector<Index>& index) {
    Index position = 0;
    for (std::size_t i = 0; i < shape.size(); ++i) position = position * shape[i] + index[i];
    return static_cast<std::size_t>(position);
}

std::int64_t neutral(Combine combine) {
    if (combine == Combine::max) return std::numeric_limits<std::int64_t>::min();
    if (combine == Combine::min) return std::numeric_limits<std::int64_t>::max();
    return combine == Combine::prod ? 1 : 0;
}

std::int64_t combined(Combine combine, std::int64_t a, std::int64_t b) {
    const auto ua = static_cast<std::uint64_t>(a);
    const auto ub = static_cast<std::uint64_t>(b);
    if (combine == Combine::max) return std::max(a, b);
    if (combine == Combine::min) return std::min(a, b);
    return static_cast<std::int64_t>(combine == Combine::prod ? ua * ub : ua + ub);
}

// The start of the other block in an array of blocks. Both shapes have one rank.
std::vector<Index> moved(std::vector<Index> index, const std::vector<Index>& start) {
    for (std::size_t i = 0; i < index.size(); ++i) index[i] += start[i];
    return index;
}

Values local(const Operation& operation, std::size_t position, const Values& tile) {
    const Values nothing(count_of(operation.output), neutral(operation.combine));
    switch (operation.kind) {
        case OperationKind::cast:  // values are whole numbers here
            return tile;
        case OperationKind::transpose: {
            Values out(tile.size());
            for_each(operation.output, [&](const std::vector<Index>& index, std::size_t own) {
                std::vector<Index> from(index.size());
                for (std::size_t i = 0; i < index.size(); ++i) from[operation.permutation[i]] = index[i];
                out[own] = tile[at(operation.input, from)];
            });
            return out;
        }
        case OperationKind::reorder: {
            std::vector<Index> order;
            for (const Interval& run : operation.runs)
                for (Index entry = run.begin; entry < run.end; ++entry) order.push_back(entry);
            Values out(tile.size());
            for_each(operation.output, [&](std::vector<Index> index, std::size_t own) {
                index[1] = order[static_cast<std::size_t>(index[1])];
                out[own] = tile[at(operation.input, index)];
            });
            return out;
        }
        case OperationKind::slice: {
            Values out(count_of(operation.output));
            for_each(operation.output, [&](const std::vector<Index>& index, std::size_t own) {
                out[own] = tile[at(operation.input, moved(index, operation.starts[position]))];
            });
            return out;
        }
        case OperationKind::update_slice: {
            Values out = nothing;
            for_each(operation.input, [&](const std::vector<Index>& index, std::size_t own) {
                out[at(operation.output, moved(index, operation.starts[position]))] = tile[own];
            });
            return out;
        }
        case OperationKind::mask:
            return std::ranges::binary_search(operation.keeps, static_cast<Index>(position)) ? tile : nothing;
        case OperationKind::scale: {
            Values out = tile;
            for (std::int64_t& value : out) value = value * operation.factor.times / operation.factor.over;
            return out;
        }
        case OperationKind::reduce: {
            Values out = nothing;
            for (std::size_t i = 0; i < tile.size(); ++i)
                out[i % out.size()] = combined(operation.combine, out[i % out.size()], tile[i]);
            return out;
        }
        default:
            return tile;  // reshape
    }
}

// The result of member number `own` of a group.
Values collective(const Operation& operation, const std::vector<const Values*>& tiles, std::size_t own) {
    const std::size_t size = tiles.size();
    Values out;
    if (operation.kind == OperationKind::all_gather) {
        for (const Values* tile : tiles) out.insert(out.end(), tile->begin(), tile->end());
        return out;
    }
    if (operation.kind == OperationKind::all_reduce) {
        out.assign(tiles[0]->size(), neutral(operation.combine));
        for (const Values* tile : tiles)
            for (std::size_t i = 0; i < out.size(); ++i) out[i] = combined(operation.combine, out[i], (*tile)[i]);
        return out;
    }
    const std::size_t block = tiles[0]->size() / size;
    if (operation.kind == OperationKind::reduce_scatter) out.assign(block, neutral(operation.combine));
    for (const Values* tile : tiles)
        for (std::size_t i = 0; i < block; ++i) {
            const std::int64_t value = (*tile)[own * block + i];
            if (operation.kind == OperationKind::all_to_all)
                out.push_back(value);
            else
                out[i] = combined(operation.combine, out[i], value);
        }
    return out;
}

tl::unexpected<Error> wrong(std::size_t number, const Operation& operation, std::string_view why) {
    return fail(Code::mismatch, fmt::format("operation {} ({}): {}", number + 1, name(operation.kind), why));
}

// Every position appears once over all groups, and all groups have one size. In pairs, every position appears once as a
// source and once as a target.
bool covers(std::vector<Index> positions, Index count) {
    std::ranges::sort(positions);
    for (Index i = 0; i < static_cast<Index>(positions.size()); ++i)
        if (positions[static_cast<std::size_t>(i)] != i) return false;
    return static_cast<Index>(positions.size()) == count;
}

bool groups_fit(const Operation& operation, Index count) {
    std::vector<Index> members;
    for (const auto& group : operation.groups) {
        members.insert(members.end(), group.begin(), group.end());
        if (group.size() != operation.groups.front().size()) return false;
    }
    return covers(std::move(members), count);
}

bool pairs_fit(const Operation& operation, Index count) {
    std::vector<Index> sources;
    std::vector<Index> targets;
    for (const SourceTargetPair& pair : operation.pairs) {
        sources.push_back(pair.source);
        targets.push_back(pair.target);
    }
    return covers(std::move(sources), count) && covers(std::move(targets), count);
}

bool within(const Operation& operation, Index count) {
    const bool grows = operation.kind == OperationKind::update_slice;
    const auto& whole = grows ? operation.output : operation.input;
    const auto& part = grows ? operation.input : operation.output;
    if (whole.size() != part.size() || static_cast<Index>(operation.starts.size()) != count) return false;
    return std::ranges::all_of(operation.starts, [&](const std::vector<Index>& start) {
        for (std::size_t i = 0; i < whole.size(); ++i)
            if (start.size() != whole.size() || start[i] < 0 || start[i] + part[i] > whole[i]) return false;
        return true;
    });
}

bool permutes(const Operation& operation) {
    const std::size_t rank = operation.input.size();
    std::vector<Index> order(operation.permutation.begin(), operation.permutation.end());
    if (operation.output.size() != rank || !covers(order, static_cast<Index>(rank))) return false;
    for (std::size_t i = 0; i < rank; ++i)
        if (operation.output[i] != operation.input[operation.permutation[i]]) return false;
    return true;
}

// Each index of dimension 1 is in one run.
bool reorders(const Operation& operation) {
    if (operation.input.size() < 2) return false;
    std::vector<Index> entries;
    for (const Interval& run : operation.runs) {
        if (run.begin < 0 || run.end > operation.input[1]) return false;
        for (Index entry = run.begin; entry < run.end; ++entry) entries.push_back(entry);
    }
    return covers(std::move(entries), operation.input[1]);
}

// True if the kind of the operation turns its input shape into its output shape.
bool shapes_fit(const Operation& operation) {
    const Index size = operation.groups.empty() ? 1 : static_cast<Index>(operation.groups.front().size());
    std::vector<Index> made = operation.input;
    switch (operation.kind) {
        case OperationKind::reshape:
            return elements_of(operation.input) == elements_of(operation.output);
        case OperationKind::reduce:
            return !made.empty() && std::vector(made.begin() + 1, made.end()) == operation.output;
        case OperationKind::all_gather:
            if (!made.empty()) made[0] *= size;
            return !made.empty() && made == operation.output;
        case OperationKind::all_to_all:
            return !made.empty() && made[0] % size == 0 && made == operation.output;
        case OperationKind::reduce_scatter:
            if (made.empty() || made[0] % size != 0) return false;
            made[0] /= size;
            return made == operation.output;
        case OperationKind::transpose:
        case OperationKind::slice:
        case OperationKind::update_slice:
            return true;  // permutes and within
        default:
            return made == operation.output;
    }
}

Result<void> fits(std::size_t number, const Operation& operation, Index count) {
    if (!shapes_fit(operation)) return wrong(number, operation, "its shapes do not fit each other");
    switch (operation.kind) {
        case OperationKind::transpose:
            return permutes(operation) ? Result<void>() : wrong(number, operation, "it permutes no dimensions");
        case OperationKind::reorder:
            return reorders(operation) ? Result<void>() : wrong(number, operation, "it reorders no dimension 1");
        case OperationKind::slice:
        case OperationKind::update_slice:
            return within(operation, count) ? Result<void>()
                                            : wrong(number, operation, "a block is not within the tile");
        case OperationKind::permute:
            return pairs_fit(operation, count) ? Result<void>()
                                               : wrong(number, operation, "its pairs are no permutation");
        default:
            if (!is_collective(operation.kind) || groups_fit(operation, count)) return {};
            return wrong(number, operation, "its groups do not cover all positions once");
    }
}

std::vector<Values> applied(const Operation& operation, const std::vector<Values>& tiles) {
    std::vector<Values> result(tiles.size());
    for (const auto& group : operation.groups) {
        std::vector<const Values*> members;
        for (const Index member : group) members.push_back(&tiles[static_cast<std::size_t>(member)]);
        for (std::size_t own = 0; own < group.size(); ++own)
            result[static_cast<std::size_t>(group[own])] = collective(operation, members, own);
    }
    for (const SourceTargetPair& pair : operation.pairs)
        result[static_cast<std::size_t>(pair.target)] = tiles[static_cast<std::size_t>(pair.source)];
    if (is_collective(operation.kind)) return result;
    for (std::size_t position = 0; position < tiles.size(); ++position)
        result[position] = local(operation, position, tiles[position]);
    return result;
}

}  // namespace

Result<Tiles> interpret(const TileProgram& program, const Tiles& tiles) {
    const Mesh& mesh = program.source.mesh;
    const Index count = device_count(mesh);
    std::vector<Values> held(static_cast<std::size_t>(count));
    for (Index position = 0; position < count; ++position) {
        const auto device = static_cast<std::size_t>(device_at(mesh, position));
        if (device >= tiles.size() || static_cast<Index>(tiles[device].size()) != tile_elements(program.source))
            return fail(Code::mismatch, "the tiles are not those of the program's source");
        held[static_cast<std::size_t>(position)] = tiles[device];
    }
    for (std::size_t i = 0; i < program.operations.size(); ++i) {
        const Operation& operation = program.operations[i];
        if (held.front().size() != count_of(operation.input))
            return wrong(i, operation, "its input is not what the operation before it leaves");
        RESHARD_CHECK(fits(i, operation, count));
        held = applied(operation, held);
    }
    Tiles result(tiles.size());
    for (Index position = 0; position < count; ++position)
        result[static_cast<std::size_t>(device_at(mesh, position))] =
            std::move(held[static_cast<std::size_t>(position)]);
    return result;
}

}  // namespace reshard
