// Loads a checkpoint on two ranks of one process: loader PATH [RULES]. It prints errors like the tool.
#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <thread>

#include "reshard/backends/local.hpp"
#include "reshard/files/load.hpp"

int main(int count, char** words) {
    using namespace reshard;
    if (count < 2) return 2;
    files::ConvertOptions options;
    options.memory = Index{16} << 20;
    options.jobs = 1;
    if (count > 2 && words[2][0] != '\0') {
        std::ifstream file(words[2], std::ios::binary);
        options.rules.assign(std::istreambuf_iterator<char>(file), {});
    }
    constexpr Index ranks = 2;
    local::World world(ranks);
    std::array<std::optional<Error>, ranks> errors;
    std::array<std::thread, ranks> threads;
    for (Index rank = 0; rank < ranks; ++rank)
        threads[static_cast<std::size_t>(rank)] = std::thread([&, rank] {
            const auto loaded = files::load(world.rank(rank), words[1], options);
            if (!loaded) errors[static_cast<std::size_t>(rank)] = loaded.error();
        });
    for (std::thread& thread : threads) thread.join();
    const auto& error = errors[0] ? errors[0] : errors[1];
    if (!error) return 0;
    std::fprintf(stderr, "reshard: %s\n", describe(*error).c_str());
    return 2;
}
