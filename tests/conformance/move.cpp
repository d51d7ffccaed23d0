#include "move.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "harness.hpp"
#include "reshard/check.hpp"
#include "reshard/text.hpp"

namespace reshard::conformance {
namespace {

std::vector<Workbench> benches_of(const std::vector<Item>& items, const Executor& executor, Index rank, int run,
                                  bool donate) {
    std::vector<Workbench> benches;
    for (std::size_t i = 0; i < items.size(); ++i) {
        const auto salt = static_cast<std::uint64_t>(run) * 97 + i + 1;
        benches.emplace_back(items[i], rank, salt, executor.plans()[i].workspace_bytes, donate);
    }
    return benches;
}

std::vector<Lent> lent_for(Backend& backend, const std::vector<Workbench>& benches) {
    // The memory is the caller's, the backend's, mixed by rank and array, or the caller's and registered.
    static int calls = 0;
    const int manner = ++calls % 4;
    std::vector<Lent> all;
    for (std::size_t i = 0; i < benches.size(); ++i) {
        const auto mixed = static_cast<std::size_t>(backend.rank() + calls) + i;
        const auto lend = [&](bool own, const Image& image) -> std::unique_ptr<Memory> {
            const auto bytes = static_cast<Index>(image.bytes.size());
            const bool registers = manner == 3 || (manner == 2 && mixed % 3 == 2);
            if (registers && !backend.on_device()) return registered_memory(backend, bytes);
            if (!own) return nullptr;
            auto memory = backend.allocate(bytes);
            EXPECT_TRUE(memory);
            return memory ? std::move(*memory) : nullptr;
        };
        all.push_back({lend(manner == 1 || (manner == 2 && mixed % 2 == 1), benches[i].source),
                       lend(manner == 1 || (manner == 2 && mixed % 4 >= 2), benches[i].target)});
    }
    return all;
}

void expect_run(Bound& bound, bool polled) {
    auto ticket = bound.start();
    ASSERT_TRUE(ticket) << ticket.error().message;
    if (polled) {
        auto done = (*ticket)->test();
        while (done && !*done) done = (*ticket)->test();
        ASSERT_TRUE(done) << done.error().message;
    }
    const auto done = (*ticket)->wait();
    ASSERT_TRUE(done) << done.error().message;
}

std::string describe(const Item& item) { return format(item.plan); }

}  // namespace

void expect_moves(Backend& backend, const std::vector<Item>& items, const Manner& manner) {
    std::vector<Plan> plans;
    std::vector<Storages> storages;
    for (const Item& item : items) {
        plans.push_back(item.plan);
        storages.push_back(storages_of(item, backend.rank()));
    }
    ListPlan list = in_one_bucket(plans);
    if (!manner.buckets.empty()) list.buckets = manner.buckets;
    const MemoryPolicy memory{.donate = manner.donate};
    // Half of the cases run as steps, half as the backend prefers; the same on all ranks.
    if (!manner.together.empty())
        list.together = manner.together;
    else if (fingerprint(list) % 2 == 0)
        list = choose_executions(std::move(list), backend.capabilities(), memory);
    auto executor = Executor::prepare(judge(list, memory), backend, storages);
    ASSERT_TRUE(executor) << executor.error().message << '\n' << describe(items.front());
    std::vector<Workbench> benches = benches_of(items, *executor, backend.rank(), 0, manner.donate);
    const std::vector<Lent> lent = lent_for(backend, benches);
    std::vector<Buffers> buffers;
    for (std::size_t i = 0; i < items.size(); ++i) buffers.push_back(lent[i].buffers(benches[i]));
    auto bound = executor->bind(buffers);
    ASSERT_TRUE(bound) << bound.error().message << '\n' << describe(items.front());
    for (int run = 0; run < manner.runs; ++run) {
        const std::vector<Workbench> fresh = benches_of(items, *executor, backend.rank(), run, manner.donate);
        for (std::size_t i = 0; i < items.size(); ++i) {
            benches[i].refill(fresh[i]);
            lent[i].lend(benches[i]);
        }
        expect_run(**bound, manner.polled);
        for (std::size_t i = 0; i < items.size(); ++i) {
            lent[i].take_back(benches[i]);
            const std::string wrong = benches[i].wrong();
            EXPECT_TRUE(wrong.empty()) << "rank " << backend.rank() << ", run " << run << ", array " << i << ": "
                                       << wrong << '\n'
                                       << describe(items[i]);
        }
    }
}

void expect_moves_everywhere(const std::vector<Item>& items, const Manner& manner) {
    harness().on_every_rank([&](Backend& backend) { expect_moves(backend, items, manner); });
}

std::optional<Plan> plan_of(std::string_view mesh_text, std::string_view source, StepKind kind,
                            std::string_view target) {
    const auto mesh = parse_mesh(mesh_text);
    if (!mesh) {
        ADD_FAILURE() << mesh.error().message;
        return std::nullopt;
    }
    const auto from = parse_layout(*mesh, source);
    const auto to = parse_layout(*mesh, target);
    if (!from || !to) {
        ADD_FAILURE() << (from ? to.error() : from.error()).message;
        return std::nullopt;
    }
    Plan plan{*from, *to, {}};
    if (!equivalent(*from, *to)) plan.steps.push_back({kind, *to});  // on one device most steps change nothing
    if (const auto verdict = check(plan); !verdict) {
        ADD_FAILURE() << verdict.error().message << '\n' << format(plan);
        return std::nullopt;
    }
    return plan;
}

}  // namespace reshard::conformance
