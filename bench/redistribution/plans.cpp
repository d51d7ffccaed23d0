// This library's contestants: one plan, on memory of each kind.
#include <mpi.h>

#include <algorithm>
#include <cstring>

#include "redistribution/contestants.hpp"

namespace reshard::bench {
namespace {

// This library, on memory that it allocated, on the program's, on MPI's, or on the program's own that is registered: at
// the start of a page, or at some offset, as allocators give it.
class OurPlan final : public Contestant {
public:
    enum class Memory { allocated, callers, mpi, registered, registered_at_offset };
    OurPlan(const Case& one, Backend& backend, Pair& own, Memory memory)
        : executor_(require(Executor::prepare(judge(one.plan, backend.capabilities()), backend, one.storages))) {
        const RankPlan& plan = executor_.plans().front();
        if (memory == Memory::allocated) {
            source_memory_ = require(backend.allocate(plan.source_bytes));
            target_memory_ = require(backend.allocate(plan.target_bytes));
            source_ = source_memory_->bytes();
            target_ = target_memory_->bytes();
        } else if (memory == Memory::mpi) {
            source_ = mpi_memory(plan.source_bytes);
            target_ = mpi_memory(plan.target_bytes);
        } else if (memory == Memory::registered || memory == Memory::registered_at_offset) {
            const std::size_t offset = memory == Memory::registered ? 0 : 52;
            source_ = registered(backend, plan.source_bytes, offset);
            target_ = registered(backend, plan.target_bytes, offset);
        } else {
            source_ = own.source.bytes();
            target_ = own.target.bytes();
        }
        workspace_memory_ = require(backend.allocate(executor_.workspace_bytes()));
        const Buffers buffers{source_, target_, workspace_memory_->bytes()};
        bound_ = require(executor_.bind({&buffers, 1}));
    }
    ~OurPlan() override {
        for (void* memory : mpi_memory_) MPI_Free_mem(memory);
    }
    std::span<std::byte> source() override { return source_; }
    std::span<std::byte> target() override { return target_; }
    void run() override {
        auto ticket = require(bound_->start());
        if (const auto done = ticket->wait(); !done) require(Result<int>(tl::unexpected(done.error())));
    }
    Index extra_bytes() const override { return executor_.workspace_bytes() + executor_.staging_bytes(); }
    std::string note() const override { return executor_.describe(); }

private:
    std::span<std::byte> registered(Backend& backend, Index bytes, std::size_t offset) {
        const auto size = static_cast<std::size_t>(bytes);
        own_.emplace_back(bytes + static_cast<Index>(offset));
        const std::span<std::byte> memory = own_.back().bytes().subspan(offset, size);
        registrations_.push_back(require(backend.register_memory(memory)));
        return memory;
    }
    std::span<std::byte> mpi_memory(Index bytes) {
        void* start = nullptr;
        MPI_Alloc_mem(std::max<Index>(bytes, 1), MPI_INFO_NULL, &start);
        std::memset(start, 1, static_cast<std::size_t>(bytes));
        mpi_memory_.push_back(start);
        return {static_cast<std::byte*>(start), static_cast<std::size_t>(bytes)};
    }

    Executor executor_;
    std::unique_ptr<reshard::Memory> source_memory_;
    std::unique_ptr<reshard::Memory> target_memory_;
    std::unique_ptr<reshard::Memory> workspace_memory_;
    std::vector<void*> mpi_memory_;
    std::vector<Buffer> own_;
    std::vector<Registration> registrations_;
    std::span<std::byte> source_;
    std::span<std::byte> target_;
    std::unique_ptr<Bound> bound_;
};

// Our plan on a backend with the fastest options for its runs.
class TunedPlan final : public Contestant {
public:
    TunedPlan(const Case& one, const mpi::Options& options, Pair& own, OurPlan::Memory memory) {
        const auto seconds = [&](Backend& backend) -> Result<double> {
            OurPlan plan(one, backend, own, memory);
            double least = 1e9;
            for (int run = 0; run < 5; ++run) {
                MPI_Barrier(MPI_COMM_WORLD);
                const double begin = MPI_Wtime();
                plan.run();
                least = std::min(least, MPI_Wtime() - begin);
            }
            return least;
        };
        const auto tuned = require(mpi::tune(MPI_COMM_WORLD, options, seconds));
        backend_ = require(mpi::make_backend(MPI_COMM_WORLD, tuned));
        plan_ = std::make_unique<OurPlan>(one, *backend_, own, memory);
    }
    std::span<std::byte> source() override { return plan_->source(); }
    std::span<std::byte> target() override { return plan_->target(); }
    void run() override { plan_->run(); }
    Index extra_bytes() const override { return plan_->extra_bytes(); }
    std::string note() const override { return plan_->note(); }

private:
    std::unique_ptr<Backend> backend_;
    std::unique_ptr<OurPlan> plan_;
};

}  // namespace

std::vector<Entry> plans(const Case& one, Backend& backend, const mpi::Options& options, Pair& own) {
    std::vector<Entry> all;
    all.push_back({"plan, allocated memory", Kind::plan,
                   std::make_unique<OurPlan>(one, backend, own, OurPlan::Memory::allocated)});
    all.push_back({"plan, registered memory", Kind::plan,
                   std::make_unique<OurPlan>(one, backend, own, OurPlan::Memory::registered)});
    all.push_back({"plan, registered memory at an offset", Kind::plan,
                   std::make_unique<OurPlan>(one, backend, own, OurPlan::Memory::registered_at_offset)});
    using Other = std::pair<std::string, OurPlan::Memory>;
    for (const auto& [name, memory] : {Other("plan, caller's memory", OurPlan::Memory::callers),
                                       Other("plan, MPI_Alloc_mem", OurPlan::Memory::mpi)}) {
        all.push_back({name, Kind::plan, std::make_unique<TunedPlan>(one, options, own, memory)});
        all.push_back({name + ", untuned", Kind::plan, std::make_unique<OurPlan>(one, backend, own, memory)});
    }
    return all;
}

}  // namespace reshard::bench
