// For a reader of PyTorch: DTensor's placements, redistributed by the ranks of one process.
#include <cstdio>
#include <numeric>

#include <reshard/local.hpp>
#include <reshard/reshard.hpp>

using namespace reshard;

int main() {
    // [README pytorch]
    Mesh mesh{{"data", 2}, {"model", 2}};
    Layout source = from_placements(mesh, DType::f32, {6, 4}, {Shard(0), Replicate()}).value();
    Layout target = from_placements(mesh, DType::f32, {6, 4}, {Replicate(), Shard(1)}).value();
    Plan plan = synthesize(source, target).value().plan;
    local::World world(4);  // four ranks in this process; mpi::make_backend(comm) for four processes
    // [README pytorch end]

    // Every rank of the world starts before any waits: one thread drives them all.
    std::vector<float> array(24);
    std::iota(array.begin(), array.end(), 0.0F);
    std::vector<std::vector<float>> in(4), out(4);
    std::vector<std::vector<std::byte>> workspaces(4);
    std::vector<Executor> executors;
    std::vector<std::unique_ptr<Bound>> bound;
    std::vector<std::unique_ptr<Ticket>> tickets;
    for (Index rank = 0; rank < 4; ++rank) executors.push_back(Executor::prepare(plan, world.rank(rank)).value());
    for (Index rank = 0; rank < 4; ++rank) {
        const auto at = static_cast<std::size_t>(rank);
        const Box box = as_box(tile(source, rank));
        for (Index i = box[0].begin; i < box[0].end; ++i)
            for (Index j = box[1].begin; j < box[1].end; ++j)
                in[at].push_back(array[static_cast<std::size_t>(4 * i + j)]);
        out[at].resize(static_cast<std::size_t>(count(tile(target, rank))));
        workspaces[at].resize(static_cast<std::size_t>(executors[at].workspace_bytes()));
        const Buffers buffers{std::as_bytes(std::span(in[at])), std::as_writable_bytes(std::span(out[at])),
                              workspaces[at]};
        bound.push_back(executors[at].bind({&buffers, 1}).value());
    }
    for (auto& one : bound) tickets.push_back(one->start().value());
    int wrong = 0;
    for (auto& ticket : tickets) wrong += ticket->wait() ? 0 : 1;
    for (Index rank = 0; rank < 4; ++rank) {
        const Box box = as_box(tile(target, rank));
        std::size_t at = 0;
        for (Index i = box[0].begin; i < box[0].end; ++i)
            for (Index j = box[1].begin; j < box[1].end; ++j)
                wrong +=
                    out[static_cast<std::size_t>(rank)][at++] != array[static_cast<std::size_t>(4 * i + j)] ? 1 : 0;
    }
    std::printf("wrong %d of 48\n", wrong);
    return wrong == 0 ? 0 : 1;
}
