// The cost of digests on one core: digest [ROUNDS]. The rounds of all ways are interleaved, so that other programs slow
// each way as much.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>

#include "reshard/model/digest.hpp"
#include "src/copy/kernels/dispatch.hpp"
#include "src/copy/page_memory.hpp"

namespace reshard {
namespace {

// Processor time, since other programs may be running.
double now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double median(std::vector<double> numbers) {
    std::ranges::sort(numbers);
    return numbers[numbers.size() / 2];
}

std::uint64_t drawn = 0;  // of all digests, so that the compiler computes them

void measure(Index bytes, int rounds) {
    const auto source = std::move(*allocate_pages(bytes));
    const auto target = std::move(*allocate_pages(bytes));
    for (Index i = 0; i < bytes; ++i) source->bytes()[static_cast<std::size_t>(i)] = static_cast<std::byte>(i * 7 / 3);
    std::memset(target->bytes().data(), 1, static_cast<std::size_t>(bytes));
    const std::byte* const from = source->bytes().data();
    std::byte* const to = target->bytes().data();
    const std::span<const std::byte> all(from, static_cast<std::size_t>(bytes));
    const DigestKeys keys;
    const CopyKernels& kernels = copy_kernels();
    const Store store = bytes < 16 << 20 ? Store::cached : Store::streaming;  // as DigestKeys::copy
    const std::pair<const char*, std::function<void()>> ways[] = {
        {"copy",
         [&] {
             kernels.rows[static_cast<std::size_t>(store)]({1, bytes, 0, 0}, from, to), store_fence();
         }},
        {"memcpy", [&] { std::memcpy(to, from, all.size()); }},
        {"digest alone", [&] { drawn += keys.of(all).sum; }},
        {"copy with digest", [&] { drawn += keys.copy(all, to).sum; }},
        {"the same, unaligned", [&] { drawn += keys.copy(all.first(all.size() - 8), to + 2, 1).sum; }}};
    std::vector<std::vector<double>> seconds(std::size(ways));
    for (int round = 0; round < rounds; ++round)
        for (std::size_t way = 0; way < std::size(ways); ++way) {
            const double begin = now();
            ways[way].second();
            seconds[way].push_back(now() - begin);
        }
    for (std::size_t way = 0; way < std::size(ways); ++way) {
        std::vector<double> ratios;
        for (std::size_t round = 0; round < seconds[way].size(); ++round)
            ratios.push_back(seconds[way][round] / seconds[0][round]);
        std::cout << fmt::format("{:5} MiB  {:20} {:6.1f} GB/s median {:6.1f} best   {:.2f}x of the first\n",
                                 bytes >> 20, ways[way].first, static_cast<double>(bytes) / median(seconds[way]) * 1e-9,
                                 static_cast<double>(bytes) / *std::ranges::min_element(seconds[way]) * 1e-9,
                                 median(ratios));
    }
}

// Each instruction set, in the first cache.
void measure_kernels() {
    alignas(64) static std::uint32_t keys[1024];
    alignas(64) static std::byte words[4096];
    for (std::size_t i = 0; i < std::size(keys); ++i) keys[i] = static_cast<std::uint32_t>(i * 2654435761U + 1);
    for (const CopyKernels* kernels : all_copy_kernels()) {
        double best = 1;
        for (int round = 0; round < 21; ++round) {
            const double begin = now();
            for (int i = 0; i < 2000; ++i) {
                words[i] = static_cast<std::byte>(drawn);
                drawn += kernels->sum_products[0](keys, words, nullptr, 64).low;
            }
            best = std::min(best, now() - begin);
        }
        std::cout << fmt::format("{:8} {:6.1f} GB/s best in the first cache\n", kernels->name,
                                 2000 * 4096 / best * 1e-9);
    }
}

}  // namespace
}  // namespace reshard

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 21;
    reshard::measure_kernels();
    for (const reshard::Index mebibytes : {1, 16, 64, 256}) reshard::measure(mebibytes << 20, rounds);
    std::cout << (reshard::drawn == 0 ? "no digest\n" : "");
}
