// The cost of page templates: pages [rounds]. For pairs of caches, the time of the plan, and of one bind for a request.
// Processor time of one core. Binds of all pairs are interleaved; medians.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>

#include "reshard/model/pages.hpp"
#include "reshard/text.hpp"

namespace reshard {
namespace {

// Processor time in microseconds, since other programs may be running.
double now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
}

struct Pair {
    const char* name;
    const char* source;  // layouts of [layers, tokens, heads, head size]
    const char* target;
    Index source_block, target_block;
    const char* source_order;
    const char* target_order;
    Index tokens;
    bool separate_layers = true;
};

constexpr const char* nhd = "order 0,1,2,3";
constexpr const char* hnd = "order 0,2,1,3";

const std::vector<Pair> pairs = {
    {"1,000 pages, one layer, TP 4 to 4", "bf16[1,131072,8@tp,128]", "bf16[1,131072,8@tp,128]", 16, 16, hnd, hnd,
     16000},
    {"the same, layers within pages", "bf16[32,131072,8@tp,128]", "bf16[32,131072,8@tp,128]", 16, 16, hnd, hnd, 16000,
     false},
    {"32 layers, TP 4 to 2, HND", "bf16[32,131072,8@tp,128]", "bf16[32,131072,8@x,128]", 16, 16, hnd, hnd, 16000},
    {"32 layers, TP 4 to 2, block 16 to 128", "bf16[32,131072,8@tp,128]", "bf16[32,131072,8@x,128]", 16, 128, hnd, hnd,
     16000},
    {"32 layers, HND to NHD", "bf16[32,131072,8@tp,128]", "bf16[32,131072,8@x,128]", 16, 16, hnd, nhd, 16000},
    {"MLA, 61 layers, DCP 4 to 2, interleave 1", "bf16[61,131072@tp/1,1,576]", "bf16[61,131072@x/1,1,576]", 64, 64, nhd,
     nhd, 16000},
};

PagedCache cache_of(const Mesh& mesh, const char* layout, Index block, const char* order, const PageDims& dims) {
    PagedCache cache{parse_layout(mesh, layout).value(), block, 8192, {}, 0};
    cache.storages = parse_storages(page_layout(cache, dims), order).value();
    return cache;
}

// A pair with all that a bind needs.
struct Case {
    PageTemplate made;
    Index tokens;
    double plan_microseconds;
    PageRows rows = {};
    std::vector<double> fresh = {};   // microseconds
    std::vector<double> reused = {};  // with the memory of earlier rows
};

Case case_of(const Pair& pair) {
    const PageDims dims{1, pair.separate_layers ? std::optional<std::size_t>(0) : std::nullopt};
    const Mesh four{{"tp", 4}};
    const Mesh others = std::string_view(pair.target).find("@tp") == std::string_view::npos
                            ? Mesh{{{"x", 2}}, {4, 5}}
                            : Mesh{{{"tp", 4}}, {4, 5, 6, 7}};
    const PagedCache source = cache_of(four, pair.source, pair.source_block, pair.source_order, dims);
    const PagedCache target = cache_of(others, pair.target, pair.target_block, pair.target_order, dims);
    const double begin = now();
    PageTemplate made = PageTemplate::make(source, target, dims, 1).value();
    return {std::move(made), pair.tokens, now() - begin};
}

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

void measure(int rounds) {
    std::vector<Case> cases;
    for (const Pair& pair : pairs) cases.push_back(case_of(pair));
    std::vector<Index> from(8192), to(8192);
    std::iota(from.begin(), from.end(), Index{0});
    std::iota(to.begin(), to.end(), Index{0});
    std::mt19937_64 random(7);
    std::ranges::shuffle(from, random);
    std::ranges::shuffle(to, random);
    std::vector<std::uint64_t> bases(8 * 61);
    for (std::size_t i = 0; i < bases.size(); ++i) bases[i] = (i + 1) << 32;
    const OwnTiles own{std::span(bases).first(61), 0};
    const PeerTiles peers{bases, 61, {}};
    for (int round = 0; round < rounds; ++round)
        for (Case& one : cases) {
            const PageRequest request{from, to, {0, one.tokens}};
            const double begin = now();
            PageRows rows = one.made.bind(request, own, peers).value();
            one.fresh.push_back(now() - begin);
            if (round == 0) one.rows = std::move(rows);
            const double again = now();
            if (!one.made.bind(request, own, peers, one.rows)) std::abort();
            one.reused.push_back(now() - again);
        }
    fmt::print("{:42} {:>9} {:>7} {:>10} {:>9} {:>10} {:>9}\n", "pair", "plan", "rows", "bind", "a row", "again",
               "a row");
    for (std::size_t i = 0; i < cases.size(); ++i) {
        const auto rows = static_cast<double>(cases[i].rows.memory.local.size());
        const double fresh = median(cases[i].fresh), reused = median(cases[i].reused);
        fmt::print("{:42} {:6.0f} us {:7} {:7.1f} us {:6.1f} ns {:7.1f} us {:6.1f} ns\n", pairs[i].name,
                   cases[i].plan_microseconds, rows, fresh, 1e3 * fresh / rows, reused, 1e3 * reused / rows);
    }
}

}  // namespace
}  // namespace reshard

int main(int argc, char** argv) { reshard::measure(argc > 1 ? std::atoi(argv[1]) : 25); }
