#include "tiles.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace reshard::runs {

using conformance::Lent;
using conformance::Workbench;

Tiles::Tiles(const Schedule& schedule, std::size_t executor, Index rank)
    : schedule_(schedule), list_(schedule.lists[executor]), executor_(executor), rank_(rank) {}

Workbench Tiles::bench(std::size_t array, int run) const {
    const std::uint64_t salt = 97 * static_cast<std::uint64_t>(run) + 13 * executor_ + array + 1;
    return {list_.items[array], rank_, salt, workspace_bytes_[array], list_.donate};
}

Result<void> Tiles::take(Backend& backend, const Executor& executor) {
    std::ranges::move(benches_, std::back_inserter(benches_before_));
    std::ranges::move(workspaces_, std::back_inserter(memory_before_));
    for (Lent& lent : lent_) {
        memory_before_.push_back(std::move(lent.source));
        memory_before_.push_back(std::move(lent.target));
    }
    benches_.clear();
    lent_.clear();
    workspaces_.clear();
    workspace_bytes_.clear();
    Result<void> all;
    const auto lend = [&](bool own, std::size_t bytes) -> std::unique_ptr<Memory> {
        if (!own) return nullptr;
        auto memory = backend.allocate(static_cast<Index>(bytes));
        if (memory) return std::move(*memory);
        all = tl::unexpected(memory.error());
        return nullptr;
    };
    const std::uint64_t manner = mixed(schedule_, executor_) % 3;  // all the caller's, all the backend's, or mixed
    for (std::size_t i = 0; i < list_.items.size(); ++i) {
        workspace_bytes_.push_back(executor.plans()[i].workspace_bytes);
        const Workbench& own = benches_.emplace_back(bench(i, 0));
        const std::uint64_t drawn =
            mixed(schedule_, 1000 * executor_ + 10 * i + 100'000 * static_cast<std::size_t>(rank_));
        const auto lends = [&](int bit) { return manner == 1 || (manner == 2 && (drawn >> bit) % 2 == 1); };
        lent_.push_back({lend(lends(0), own.source.bytes.size()), lend(lends(1), own.target.bytes.size())});
        workspaces_.push_back(lend(lends(2), own.workspace.size()));
    }
    return all;
}

std::vector<Buffers> Tiles::buffers() {
    std::vector<Buffers> all;
    for (std::size_t i = 0; i < benches_.size(); ++i) {
        Buffers& one = all.emplace_back(lent_[i].buffers(benches_[i]));
        if (workspaces_[i]) one.workspace = workspaces_[i]->bytes().first(one.workspace.size());
    }
    return all;
}

void Tiles::fill(int run) {
    for (std::size_t i = 0; i < benches_.size(); ++i) {
        benches_[i].refill(bench(i, run));
        lent_[i].lend(benches_[i]);
    }
}

std::string Tiles::wrong() {
    for (std::size_t i = 0; i < benches_.size(); ++i) {
        lent_[i].take_back(benches_[i]);
        if (auto text = benches_[i].wrong(); !text.empty()) return fmt::format("array {}: {}", i, text);
    }
    return {};
}

void Tiles::give_back() {
    lent_.clear();
    workspaces_.clear();
    memory_before_.clear();
    benches_.clear();
    benches_before_.clear();
}

}  // namespace reshard::runs
