// A move that casts f64 to f32, transposes and pads, between ranks of this process: in one call, and without padding
// planned first.
#include <cstdio>

#include <reshard/backends/local.hpp>
#include <reshard/planner/view.hpp>
#include <reshard/reshard.hpp>

using namespace reshard;

namespace {

// Element (i, j) of the source is j + i / 3, which a float rounds.
double value(Index i, Index j) { return static_cast<double>(j) + static_cast<double>(i) / 3; }

std::vector<double> source_tile(const Layout& source, Index rank) {
    const Tile own = tile(source, rank);
    std::vector<double> elements;
    for (Index i = 0; i < own[0].size(); ++i)
        for (Index j = 0; j < own[1].size(); ++j) elements.push_back(value(own[0].at(i), own[1].at(j)));
    return elements;
}

int wrong_in(const std::vector<float>& elements, const Layout& target, Index rank) {
    const Tile own = tile(target, rank);
    int wrong = 0;
    std::size_t at = 0;
    for (Index j = 0; j < own[0].size(); ++j)
        for (Index i = 0; i < own[1].size(); ++i)
            if (elements[at++] != (own[0].at(j) < 8 ? static_cast<float>(value(own[1].at(i), own[0].at(j))) : -1.0F))
                ++wrong;
    return wrong;
}

Result<void> in_one_call(local::World& world, const Layout& source, const Layout& target,
                         std::span<const ConstElements> in, std::span<const Elements> out) {
    // [README cast_and_transpose]
    MoveOptions options{.cast = true, .permute = {1, 0}, .fill = fill_of(-1.0F)};
    return local::redistribute(world, source, target, in, out, options);  // or redistribute(backend, ...)
    // [README cast_and_transpose end]
}

Result<Executor> planned_first(Backend& backend, const Layout& source, const Layout& target) {
    // [README permuted]
    const std::vector<Index> order = {1, 0};
    Options options;
    options.cast = true;
    const Synthesis made = synthesize(permuted(source, order).value(), target, options).value();
    Storages storages;
    storages.source = permuted(row_major(tile(source, backend.rank())), order);
    return Executor::prepare(made, backend, storages);
    // [README permuted end]
}

}  // namespace

int main() {
    const Mesh mesh{{"x", 4}};
    const Layout source = make_layout(mesh, DType::f64, {6, 8}, P{"x", {}}).value();
    const Layout target = make_layout(mesh, DType::f32, {8, 6}, P{"x", {}}).value();
    const Layout padded = make_layout(mesh, DType::f32, {10, 6}, P{"x", {}}).value();
    std::vector<std::vector<double>> sources;
    std::vector<std::vector<float>> targets;
    for (Index rank = 0; rank < 4; ++rank) {
        sources.push_back(source_tile(source, rank));
        targets.emplace_back(tile_count(padded, rank));
    }
    local::World world(4);
    const std::vector<ConstElements> in(sources.begin(), sources.end());
    const std::vector<Elements> out(targets.begin(), targets.end());
    if (const auto moved = in_one_call(world, source, padded, in, out); !moved) {
        std::puts(moved.error().message.c_str());
        return 1;
    }
    int wrong = 0;
    for (Index rank = 0; rank < 4; ++rank) wrong += wrong_in(targets[static_cast<std::size_t>(rank)], padded, rank);
    std::vector<Executor> executors;
    for (Index rank = 0; rank < 4; ++rank) executors.push_back(planned_first(world.rank(rank), source, target).value());
    std::printf("%d wrong, a workspace of %d bytes\n", wrong, static_cast<int>(executors.front().workspace_bytes()));
    return wrong == 0 ? 0 : 1;
}
