// Two jobs in one program, for the page docs/live.md: a trainer with two ranks and an engine with three, each a thread.
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "reshard/live/publish.hpp"
#include "reshard/live/subscribe.hpp"

using namespace reshard;
using namespace std::chrono_literals;

static std::atomic<int> finished = 0;  // ranks of the engine

static void trainer(const std::string& folder, int rank, int steps) {
    // [README live_publish]
    auto job = live::join_group(folder + "/trainer", rank, 2).value();  // 2 ranks, started by anything
    Layout by_rows = make_layout(Mesh{{"x", 2}}, DType::f32, {6, 6}, P{"x", {}}).value();
    std::vector<float> weights(tile_count(by_rows, rank));
    std::vector<live::PublishedTensor> tensors{{"weights", by_rows, std::as_bytes(std::span(weights))}};
    auto out = live::Publisher::open(*job, folder + "/weights", tensors).value();
    for (int step = 1; step <= steps; ++step) {
        std::fill(weights.begin(), weights.end(), float(step));  // one step of training
        const auto done = out.commit(step);
        if (!done) std::puts(describe(done.error()).c_str());
    }
    // [README live_publish end]
    while (finished < 3) std::this_thread::sleep_for(1ms);
}

static void engine(const std::string& folder, int rank, int steps) {
    // [README live_subscribe]
    auto job = live::join_group(folder + "/engine", rank, 3).value();
    Layout by_columns = make_layout(Mesh{{"x", 3}}, DType::f32, {6, 6}, P{{}, "x"}).value();
    std::vector<live::WantedTensor> tensors{{"weights", by_columns}};
    auto into = live::Subscriber::connect(*job, folder + "/weights", tensors).value();
    while (into.version() < steps) {
        const auto version = into.update(1min);  // the same version on all ranks
        if (!version) return void(std::puts(describe(version.error()).c_str()));
        const auto bytes = into.tile(0).value();
        const auto* columns = reinterpret_cast<const float*>(bytes.data());
        if (rank == 0) std::printf("version %d: %zu bytes of %g\n", int(*version), bytes.size(), columns[0]);
    }
    // [README live_subscribe end]
}

int main() {
    char folder[] = "/tmp/live-XXXXXX";
    if (mkdtemp(folder) == nullptr) return 1;
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < 2; ++rank) ranks.emplace_back(trainer, folder, rank, 3);
    for (int rank = 0; rank < 3; ++rank)
        ranks.emplace_back([&, rank] {
            engine(folder, rank, 3);
            ++finished;
        });
    for (std::thread& rank : ranks) rank.join();
    return rmdir(folder);
}
