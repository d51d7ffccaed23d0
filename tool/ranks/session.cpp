#include "tool/ranks/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <sstream>

#include "reshard/text.hpp"
#include "src/base/memory.hpp"
#include "src/base/try.hpp"
#include "src/copy/page_memory.hpp"

namespace reshard::cli {

Result<void> enough_memory(Rank& rank, Index mine) {
    const std::string machine = machine_name();
    const std::vector<std::string> all = rank.share(fmt::format("{} {}", mine, machine));
    Index needed = 0;
    for (const std::string& theirs : all) {
        const std::size_t space = theirs.find(' ');
        if (theirs.substr(space + 1) == machine) needed = saturating_add(needed, std::stoll(theirs.substr(0, space)));
    }
    const AvailableMemory available = available_memory();
    if (needed <= available.bytes) return agree(rank, {});
    return agree(rank, fail(Code::infeasible,
                            fmt::format("the ranks of one machine need {}, and {} has {} available",
                                        format_bytes(needed), available.holder, format_bytes(available.bytes))));
}

MemoryTaken memory_taken(Rank& rank, const ResidentGrowth& growth, const Accounted& mine) {
    MemoryTaken taken{{}, largest(rank, std::vector<Index>{growth.bytes()}).front(), growth.exact()};
    const std::string brought = fmt::format("{} {} {} {}", mine.source, mine.target, mine.workspace, mine.staging);
    for (const std::string& text : rank.share(brought)) {
        Accounted theirs;
        std::istringstream(text) >> theirs.source >> theirs.target >> theirs.workspace >> theirs.staging;
        if (theirs.all() > taken.accounted.all()) taken.accounted = theirs;
    }
    return taken;
}

Result<std::unique_ptr<Session>> Session::make(Rank& rank, Backend& backend, const Judged<Plan>& plan,
                                               const Storages& storages, TileMemory tiles, const TileBytes& least) {
    RESHARD_TRY(auto& executor, agree(rank, Executor::prepare(plan, backend, storages)));
    std::unique_ptr<Session> mover(new Session(std::move(executor), backend, plan.limits().memory.donate));
    const RankPlan& mine = mover->rank_plan();
    mover->accounted_ = {std::max(mine.source_bytes, least.source), std::max(mine.target_bytes, least.target),
                         mover->executor_.workspace_bytes(), mover->executor_.staging_bytes()};
    const Accounted& bytes = mover->accounted_;
    const Index wanted = saturating_add(saturating_add(bytes.source, bytes.target), bytes.workspace);
    RESHARD_CHECK(enough_memory(rank, wanted));
    RESHARD_CHECK(agree(rank, mover->take_memory(tiles)));
    return mover;
}

Result<std::unique_ptr<Memory>> Session::own_pages(Index bytes) const {
    auto pages = allocate_pages(bytes);
    if (pages) std::ranges::fill((*pages)->bytes(), std::byte{0});  // touched, as a caller's pages are
    return pages;
}

Result<void> Session::register_tiles() {
    const auto enter = [&]() -> Result<void> {
        for (const std::span<std::byte> tile : {source_there(), target_there()}) {
            RESHARD_TRY(auto& registered, backend_.register_memory(tile));
            registrations_.push_back(std::move(registered));
        }
        return {};
    };
    const auto begin = std::chrono::steady_clock::now();
    RESHARD_CHECK(enter());
    for (Registration& one : registrations_) {
        RESHARD_CHECK(one.end());
    }
    register_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    registrations_.clear();
    return enter();
}

Result<void> Session::take_memory(TileMemory tiles) try {
    for (auto [memory, bytes] : {std::pair{&source_, accounted_.source}, std::pair{&target_, accounted_.target}}) {
        RESHARD_ASSIGN(*memory, tiles == TileMemory::allocated ? backend_.allocate(bytes) : own_pages(bytes));
    }
    RESHARD_ASSIGN(workspace_, backend_.allocate(accounted_.workspace));
    if (tiles == TileMemory::registered) {
        RESHARD_CHECK(register_tiles());
    }
    if (backend_.on_device()) {
        own_source_.resize(size(accounted_.source));
        own_target_.resize(size(accounted_.target));
    } else {
        // The system provides memory only when it is touched. That cost belongs to the allocation, not to the move.
        std::ranges::fill(workspace_->bytes(), std::byte{0});
    }
    Buffers buffers{source_there(), target_there(), workspace_->bytes()};
    if (donate_) buffers.donated = source_there();
    RESHARD_ASSIGN(bound_, executor_.bind({&buffers, 1}));
    return {};
} catch (const std::bad_alloc&) {
    return fail(Code::infeasible, fmt::format("no memory for {}", format_bytes(accounted_.all())));
}

void Session::wipe() { std::ranges::fill(target(), std::byte{0xa5}); }

Result<void> Session::bring() {
    if (!backend_.on_device()) return {};
    RESHARD_CHECK(backend_.put(own_source_, source_there()));
    return backend_.put(own_target_, target_there());
}

Result<void> Session::fetch() {
    return backend_.on_device() ? backend_.get(target_there(), own_target_) : Result<void>();
}

Result<double> Session::move(Rank& rank) {
    RESHARD_CHECK(agree(rank, bring()));
    rank.barrier();
    const auto begin = std::chrono::steady_clock::now();
    const auto moved = [&]() -> Result<void> {
        auto ticket = bound_->start();
        return ticket ? (*ticket)->wait() : tl::unexpected(ticket.error());
    }();
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    RESHARD_CHECK(agree(rank, moved));
    RESHARD_CHECK(agree(rank, fetch()));
    return largest(rank, std::vector<double>{spent.count()}).front();
}

}  // namespace reshard::cli
