#include "trial.hpp"

#include <gtest/gtest.h>

#include <random>

#include "reshard/backends/local.hpp"
#include "reshard/text.hpp"

namespace reshard::nccl::test {
namespace {

// Small numbers, exact in every dtype and in every order of a sum.
std::vector<std::byte> small_numbers(Index bytes, DType dtype, std::mt19937& random) {
    std::vector<std::byte> data(static_cast<std::size_t>(bytes));
    if (dtype != DType::f32) {
        for (std::byte& byte : data) byte = static_cast<std::byte>(random() % 3);
        return data;
    }
    for (std::size_t i = 0; i + sizeof(float) <= data.size(); i += sizeof(float)) {
        const auto number = static_cast<float>(random() % 1000);
        std::memcpy(&data[i], &number, sizeof number);
    }
    return data;
}

}  // namespace

Plan plan_of(const char* mesh_text, const char* source, const std::vector<Stop>& stops) {
    const Mesh mesh = *parse_mesh(mesh_text);
    Plan plan{*parse_layout(mesh, source), *parse_layout(mesh, source), {}};
    for (const Stop& stop : stops) {
        plan.steps.push_back({stop.kind, *parse_layout(mesh, stop.layout)});
        plan.target = plan.steps.back().layout;
    }
    return plan;
}

Wanted wanted(const Plan& plan, unsigned seed) {
    std::mt19937 random(seed);
    Wanted made{plan, {}, {}};
    const Index ranks = device_count(plan.source);
    local::World world(ranks);
    std::vector<Executor> executors;
    std::vector<std::vector<std::byte>> workspaces;
    for (Index rank = 0; rank < ranks; ++rank) {
        executors.push_back(*Executor::prepare(judge(plan, world.rank(rank).capabilities()), world.rank(rank)));
        const RankPlan& own = executors.back().plans().front();
        made.sources.push_back(small_numbers(own.source_bytes, plan.source.dtype, random));
        made.targets.emplace_back(static_cast<std::size_t>(own.target_bytes));
        workspaces.emplace_back(static_cast<std::size_t>(own.workspace_bytes));
    }
    std::vector<std::unique_ptr<Ticket>> tickets;
    for (std::size_t rank = 0; rank < executors.size(); ++rank) {
        const Buffers buffers{made.sources[rank], made.targets[rank], workspaces[rank]};
        tickets.push_back(*(*executors[rank].bind(std::span(&buffers, 1)))->start());
    }
    for (const auto& ticket : tickets) EXPECT_TRUE(ticket->wait());
    return made;
}

Trial::Trial(Backend& backend, const Wanted& wanted, Index workspace_bytes)
    : backend_(backend), rank_(static_cast<std::size_t>(backend.rank())) {
    source_ = *backend.allocate(static_cast<Index>(wanted.sources[rank_].size()));
    target_ = *backend.allocate(static_cast<Index>(wanted.targets[rank_].size()));
    workspace_ = *backend.allocate(workspace_bytes);
    fill(wanted);
}

Buffers Trial::buffers() { return {source_->bytes(), target_->bytes(), workspace_->bytes()}; }

void Trial::fill(const Wanted& wanted) {
    std::vector<std::byte> spoiled = wanted.targets[rank_];
    for (std::byte& byte : spoiled) byte = ~byte;
    EXPECT_TRUE(backend_.put(wanted.sources[rank_], source_->bytes()));
    EXPECT_TRUE(backend_.put(spoiled, target_->bytes()));
}

bool Trial::right(const Wanted& wanted) {
    std::vector<std::byte> got(wanted.targets[rank_].size());
    EXPECT_TRUE(backend_.get(target_->bytes(), got));
    return got == wanted.targets[rank_];
}

}  // namespace reshard::nccl::test
