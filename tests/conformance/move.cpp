#include "move.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "harness.hpp"
#include "reshard/check.hpp"
#include "reshard/text.hpp"

namespace reshard::conformance {
namespace {

constexpr std::byte guard{0x3c};
constexpr std::size_t guard_bytes = 64;

std::vector<Workbench> benches_of(const std::vector<Item>& items, const Executor& executor, Index rank, int run,
                                  bool donate) {
    std::vector<Workbench> benches;
    for (std::size_t i = 0; i < items.size(); ++i) {
        const auto salt = static_cast<std::uint64_t>(run) * 97 + i + 1;
        benches.emplace_back(items[i], rank, salt, executor.plans()[i].workspace_bytes, donate);
    }
    return benches;
}

// Whose memory the tiles of one array lie in: the caller's, or what the backend allocates, which peers may reach. The
// contents go from the bench before a run and back to it after.
struct Lent {
    std::unique_ptr<Memory> source;
    std::unique_ptr<Memory> target;

    [[nodiscard]] Buffers buffers(Workbench& bench) const {
        Buffers all = bench.buffers();
        if (source) (all.donated.empty() ? all.source : all.donated) = source->bytes();
        if (target) all.target = target->bytes();
        return all;
    }
    void lend(const Workbench& bench) const {
        if (source) std::ranges::copy(bench.source.bytes, source->bytes().begin());
        if (target) std::ranges::copy(bench.target.bytes, target->bytes().begin());
    }
    void take_back(Workbench& bench) const {
        if (source) std::ranges::copy(source->bytes(), bench.source.bytes.begin());
        if (target) std::ranges::copy(target->bytes(), bench.target.bytes.begin());
    }
};

std::vector<Lent> lent_for(Backend& backend, const std::vector<Workbench>& benches) {
    static int calls = 0;  // all from the caller, all from the backend, or each rank and array as it likes
    const int manner = ++calls % 3;
    std::vector<Lent> all;
    for (std::size_t i = 0; i < benches.size(); ++i) {
        const auto mixed = static_cast<std::size_t>(backend.rank() + calls) + i;
        const auto lend = [&](bool own, const Image& image) -> std::unique_ptr<Memory> {
            if (!own) return nullptr;
            auto memory = backend.allocate(static_cast<Index>(image.bytes.size()));
            EXPECT_TRUE(memory);
            return memory ? std::move(*memory) : nullptr;
        };
        all.push_back({lend(manner == 1 || (manner == 2 && mixed % 2 == 1), benches[i].source),
                       lend(manner == 1 || (manner == 2 && mixed % 4 >= 2), benches[i].target)});
    }
    return all;
}

// Copies contents only: what is bound stays where it is.
void refill(Workbench& bench, const Workbench& fresh) {
    std::ranges::copy(fresh.source.bytes, bench.source.bytes.begin());
    std::ranges::copy(fresh.target.bytes, bench.target.bytes.begin());
    bench.source_wanted = fresh.source_wanted;
    bench.target_wanted = fresh.target_wanted;
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

// Of a plan's summands, wherever there are some; the tests' plans have them under one reduction.
std::optional<Reduction> reduction_of(const Plan& plan) {
    if (!plan.source.unreduced.empty()) return plan.source.reduction;
    for (const Step& step : plan.steps)
        if (!step.layout.unreduced.empty()) return step.layout.reduction;
    return std::nullopt;
}

std::string describe(const Item& item) { return format(item.plan); }

}  // namespace

Workbench::Workbench(const Item& item, Index rank, std::uint64_t salt, Index workspace_size, bool donate)
    : source(image_of(item.plan.source, item.plan.source, rank, item.source, salt, reduction_of(item.plan))),
      target(blank_of(item.plan.target, rank, item.target)),
      workspace(static_cast<std::size_t>(workspace_size) + guard_bytes, guard),
      source_wanted(source),
      target_wanted(image_of(item.plan.target, item.plan.source, rank, item.target, salt, reduction_of(item.plan))),
      workspace_bytes(workspace_size),
      layout_(item.plan.source),
      style_(item.source),
      rank_(rank),
      donate_(donate) {}

Buffers Workbench::buffers() {
    const auto used = std::span(workspace).first(static_cast<std::size_t>(workspace_bytes));
    if (donate_) return {{}, target.bytes, used, source.bytes};
    return {source.bytes, target.bytes, used};
}

std::string Workbench::wrong() const {
    if (auto text = difference(target, target_wanted); !text.empty()) return "target: " + text;
    if (auto text = difference(outside(source), outside(source_wanted)); !text.empty()) return "source: " + text;
    const auto tail = std::span(workspace).subspan(static_cast<std::size_t>(workspace_bytes));
    if (!std::ranges::all_of(tail, [](std::byte byte) { return byte == guard; })) return "written past the workspace";
    return {};
}

Image Workbench::outside(const Image& image) const {
    return donate_ ? without_tile(image, layout_, rank_, style_) : image;
}

Storages storages_of(const Item& item, Index rank) {
    const auto source = tile_by_arithmetic(item.plan.source, rank);
    const auto target = tile_by_arithmetic(item.plan.target, rank);
    Storages storages;
    if (source) storages.source = storage_of(item.source, *source);
    if (target) storages.target = storage_of(item.target, *target);
    return storages;
}

void expect_moves(Backend& backend, const std::vector<Item>& items, const Manner& manner) {
    std::vector<Plan> plans;
    std::vector<Storages> storages;
    for (const Item& item : items) {
        plans.push_back(item.plan);
        storages.push_back(storages_of(item, backend.rank()));
    }
    ListPlan list = in_one_bucket(plans);
    if (!manner.buckets.empty()) list.buckets = manner.buckets;
    auto executor = Executor::prepare(list, backend, storages, {std::nullopt, manner.donate});
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
            refill(benches[i], fresh[i]);
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
    if (!same_tiles(*from, *to)) plan.steps.push_back({kind, *to});  // on one device most steps change nothing
    if (const auto verdict = check(plan); !verdict) {
        ADD_FAILURE() << verdict.error().message << '\n' << format(plan);
        return std::nullopt;
    }
    return plan;
}

}  // namespace reshard::conformance
