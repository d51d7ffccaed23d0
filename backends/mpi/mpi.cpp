// The MPI backend: its ranks, their memory, and how they prepare lists.
#include "reshard/backends/mpi.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "backends/mpi/base.hpp"
#include "backends/mpi/base/agree.hpp"
#include "backends/mpi/base/transport.hpp"
#include "backends/mpi/prepared.hpp"
#include "backends/mpi/shm/node_board.hpp"
#include "backends/mpi/shm/registry.hpp"
#include "src/base/try.hpp"
#include "src/tables/capabilities.hpp"

namespace reshard::mpi {
namespace {

Result<void> judge(const Options& options) {
    using Named = std::pair<std::string_view, Index>;
    for (const auto& [name, value] :
         {Named("ranks_per_node", options.ranks_per_node), Named("bounce_bytes", options.bounce_bytes),
          Named("piece_bytes", options.piece_bytes), Named("staging_bytes", options.staging_bytes)}) {
        if (value < 0) return fail(Code::usage, fmt::format("mpi::Options::{} is negative: {}", name, value));
    }
    if (options.register_after < when_repaid) {
        return fail(Code::usage,
                    fmt::format("mpi::Options::register_after is {}; it is a number of runs, 0 for never or "
                                "-1 to measure it",
                                options.register_after));
    }
    if (options.timeout.count() > 0) return {};
    return fail(Code::usage, fmt::format("mpi::Options::timeout is not more than 0: {} ms", options.timeout.count()));
}

class MpiBackend final : public Base {
public:
    MpiBackend(Communicator communicator, const Options& options)
        : Base(std::move(communicator), options.shared_memory), options_(options) {}
    MpiBackend(Communicator communicator, const Options& options, std::shared_ptr<Arena> arena)
        : Base(std::move(communicator), std::move(arena)), options_(options) {}
    ~MpiBackend() override { drop_kept(); }
    [[nodiscard]] std::string_view name() const override { return "mpi"; }
    [[nodiscard]] Capabilities capabilities() const override {
        return tables::mpi_capabilities(nodes_.is_all(), std::ssize(nodes_.members));
    }

    // Collective. Tries once which ranks reach each other's memory, and asks how messages travel between the others.
    Result<void> find_node() {
        RESHARD_ASSIGN(nodes_, find_nodes(communicator(), options_, arena()));
        RESHARD_CHECK(find_repeated());
        if (nodes_.is_all()) return meet_in_node();
        roll().poll_for(nodes_.patience());
        RESHARD_TRY(const auto& at_once, bytes_sent_at_once(communicator()));
        options_.piece_bytes = std::min(options_.piece_bytes, at_once);
        return {};
    }

    // A rank alone on its node has nobody who would reach its memory.
    Result<Registration> register_memory(std::span<std::byte> memory, OnFork on_fork) override {
        if (nodes_.members.size() < 2 || memory.empty()) return Registration(memory, nullptr);
        RESHARD_TRY(auto& held, RegisteredMemory::make(arena(), memory, on_fork));
        return Registration(memory, std::move(held));
    }

    Result<std::unique_ptr<Prepared>> prepare(std::vector<RankPlan> plans) override {
        return prepare_within(std::move(plans), index_max);
    }

    Result<std::unique_ptr<Prepared>> prepare_within(std::vector<RankPlan> plans, Index staging_bytes_max) override {
        RESHARD_CHECK(meet_to_prepare());
        const Lookout lookout([&] { return trouble(); });
        RESHARD_TRY(auto& own, duplicate(communicator()));
        Options options = options_;
        const Index signals = Signals::bytes(size(), ShmCopyPlan::signal_addresses(plans.size()));
        options.bounce_bytes = std::min(options.bounce_bytes, std::max<Index>(staging_bytes_max - signals, 0));
        auto prepared = std::make_unique<MpiPrepared>(roll(), std::move(own), repeated_);
        RESHARD_CHECK(prepared->make(std::move(plans), arena(), nodes_, options, staging_bytes_max));
        Result<void> fits;
        if (const Index held = prepared->staging_bytes(); held > staging_bytes_max) {
            fits =
                fail(Code::infeasible, fmt::format("staging needs {} bytes on this rank, the footprint limit leaves {}",
                                                   held, staging_bytes_max));
        }
        RESHARD_CHECK(all_succeeded(communicator(), fits, 1));
        return prepared;
    }

private:
    Result<std::unique_ptr<Backend>> make_group(std::span<const Index> ranks) override {
        RESHARD_TRY(auto& own, communicator_of(communicator(), ranks));
        auto backend = std::make_unique<MpiBackend>(std::move(own), options_, arena());
        RESHARD_CHECK(backend->open(options_.timeout));
        RESHARD_CHECK(backend->find_node());
        return backend;
    }

    // Ranks that lack the memory for a board meet by letters, all together.
    Result<void> meet_in_node() {
        auto board = NodeBoard::make(nodes_.own.get(), nodes_.crowded, options_.timeout);
        RESHARD_TRY(const auto& all, least(communicator(), {static_cast<char>(board ? 1 : 0)}));
        if (all.front() != 0) meet_at(std::move(*board));
        return {};
    }

    // Groups inherit the number that was measured for all ranks.
    Result<void> find_repeated() {
        if (options_.register_after == when_repaid) {
            RESHARD_ASSIGN(options_.register_after, measure_moves_that_repay(communicator()));
        }
        if (options_.register_after > 0) repeated_ = std::make_shared<RepeatedMemory>(arena(), options_.register_after);
        return {};
    }

    Options options_;
    NodeMap nodes_;
    std::shared_ptr<RepeatedMemory> repeated_;  // null if nothing is registered by itself
};

}  // namespace

constexpr std::string_view making = "mpi::make_backend";

void refuse(MPI_Comm communicator, const Error& why) {
    static_cast<void>(borrow(communicator, tl::unexpected(why), making, Options().timeout));
}

Result<std::unique_ptr<Backend>> make_backend(MPI_Comm communicator, const Options& options) {
    const Result<void> well = judge(options);
    const auto timeout = options.timeout.count() > 0 ? options.timeout : Options().timeout;
    RESHARD_TRY(auto& own, borrow(communicator, well, making, timeout));
    auto backend = std::make_unique<MpiBackend>(std::move(own), options);
    RESHARD_CHECK(backend->open(options.timeout));
    RESHARD_CHECK(backend->find_node());
    return backend;
}

// A rank whose runs fail still comes to the votes, so that the others learn of it.
Result<Options> tune(MPI_Comm communicator, const Options& options,
                     const std::function<Result<double>(Backend&)>& seconds) {
    Options best = options;
    double least = std::numeric_limits<double>::infinity();
    for (const UnregisteredBuffers way :
         {UnregisteredBuffers::by_size, UnregisteredBuffers::bounce, UnregisteredBuffers::bounce_nontemporal}) {
        Options tried = options;
        tried.unregistered_buffers = way;
        RESHARD_TRY(const auto& backend, make_backend(communicator, tried));
        RESHARD_TRY(const double own, all_succeeded(communicator, seconds(*backend), 1));
        RESHARD_TRY(const auto& slowest, reduced(communicator, std::array<double, 1>{own}, MPI_DOUBLE, MPI_MAX));
        if (slowest.front() >= least) continue;
        least = slowest.front();
        best = tried;
    }
    return best;
}

Result<Index> moves_that_repay(MPI_Comm communicator) {
    RESHARD_TRY(const auto& own, borrow(communicator, {}, "mpi::moves_that_repay", Options().timeout));
    return measure_moves_that_repay(own.get());
}

}  // namespace reshard::mpi
