// A test that runs the seeds, and all inputs that a fuzzer ever found, through their readers without a fuzzer.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "targets.hpp"

int main() {
    int files = 0;
    for (const auto& target : reshard::fuzz::targets()) {
        int own = 0;
        const std::filesystem::path folder = std::filesystem::path(RESHARD_TESTS_DIR) / "fuzz/seeds" / target.name;
        for (const auto& entry : std::filesystem::directory_iterator(folder)) {
            std::ifstream in(entry.path(), std::ios::binary);
            const std::string bytes(std::istreambuf_iterator<char>(in), {});
            target.run(bytes);
            ++own;
        }
        std::printf("%-8s %d seeds\n", std::string(target.name).c_str(), own);
        if (own == 0) return 1;
        files += own;
    }
    return files > 0 ? 0 : 1;
}
