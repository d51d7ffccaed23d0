#include "overlap/rings.hpp"

#include <algorithm>
#include <utility>

namespace reshard::overlap {
namespace {

struct Neighbours {
    int rank = 0;
    int ranks = 1;
    Neighbours() {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    }
    [[nodiscard]] int before() const { return (rank - 1 + ranks) % ranks; }
    [[nodiscard]] int behind() const { return (rank + 1) % ranks; }
};

}  // namespace

void RingMessages::receive(float* data, Index count, int from) {
    for (Index at = 0; at < count; at += elements_max_) {
        MPI_Irecv(data + at, static_cast<int>(std::min(elements_max_, count - at)), MPI_FLOAT, from, 0, MPI_COMM_WORLD,
                  &requests_.emplace_back(MPI_REQUEST_NULL));
    }
}

void RingMessages::send(const float* data, Index count, int to) {
    for (Index at = 0; at < count; at += elements_max_) {
        MPI_Isend(data + at, static_cast<int>(std::min(elements_max_, count - at)), MPI_FLOAT, to, 0, MPI_COMM_WORLD,
                  &requests_.emplace_back(MPI_REQUEST_NULL));
    }
}

void RingMessages::look() {
    int done = 0;
    MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE);
}

void RingMessages::wait() {
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    requests_.clear();
}

void ring_gather(float* all, Index count, Index elements_max, const BlockWork& work) {
    const Neighbours ring;
    RingMessages messages(elements_max);
    for (int turn = 0; turn < ring.ranks; ++turn) {
        const int have = (ring.rank - turn + ring.ranks) % ring.ranks;
        if (turn + 1 < ring.ranks) {
            const int next = (have - 1 + ring.ranks) % ring.ranks;
            messages.receive(all + next * count, count, ring.before());
            messages.send(all + have * count, count, ring.behind());
        }
        work(have, [&] { messages.look(); });
        messages.wait();
    }
}

void ring_scatter(const float* made, float* sum, Index count, Index elements_max, const BlockWork& work) {
    const Neighbours ring;
    RingMessages messages(elements_max);
    std::vector<float> here(static_cast<std::size_t>(count));
    std::vector<float> coming(static_cast<std::size_t>(count));
    for (int turn = 0; turn < ring.ranks; ++turn) {
        // The sum of this block has been through `turn` ranks; the last block is this rank's own.
        const int block = (2 * ring.ranks + ring.rank - 1 - turn) % ring.ranks;
        if (turn > 0) messages.receive(coming.data(), count, ring.before());
        work(block, [&] { messages.look(); });
        messages.wait();
        std::swap(here, coming);  // what was sent is on its way no more
        const float* own = made + block * count;
        for (std::size_t i = 0; i < here.size(); ++i) here[i] = turn > 0 ? here[i] + own[i] : own[i];
        if (turn + 1 < ring.ranks) messages.send(here.data(), count, ring.behind());
    }
    std::ranges::copy(here, sum);
}

}  // namespace reshard::overlap
