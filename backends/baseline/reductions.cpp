#include "backends/baseline/reductions.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include "backends/baseline/done.hpp"
#include "backends/mpi/base.hpp"
#include "backends/mpi/base/agree.hpp"
#include "src/base/try.hpp"
#include "src/copy/copy.hpp"
#include "src/schedule/native_collective.hpp"
#include "src/tables/dtypes.hpp"

namespace reshard::mpi {
namespace {

constexpr auto waits_to_reduce = std::chrono::minutes(5);

MPI_Datatype native_type(DType dtype) {
    const std::array types = {
#define X(dtype, Element, mpi, ...) mpi,
        RESHARD_DTYPES(X, X)
#undef X
    };
    return types[static_cast<std::size_t>(dtype)];
}

MPI_Op native_operation(Combine combine) {
    switch (combine) {
        case Combine::sum:
            return MPI_SUM;
        case Combine::max:
            return MPI_MAX;
        case Combine::min:
            return MPI_MIN;
        case Combine::prod:
            return MPI_PROD;
        case Combine::copy:
            break;
    }
    return MPI_OP_NULL;
}

// One call on this rank.
struct Reducing {
    StepKind kind = StepKind::all_reduce;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Op operation = MPI_OP_NULL;
    Communicator group;
    std::vector<int> counts;        // elements of each block
    std::vector<BoxCopy> packs;     // into the staging; none where the source lies as MPI takes it
    std::optional<BoxCopy> unpack;  // from the staging; none where the result is one run of the target
    Index source_offset = 0;
    Index target_offset = 0;
    Index packed_bytes = 0;  // of the staging, before the result
    Index result_bytes = 0;  // of the staging
};

// One behind the other.
bool in_order(const std::vector<Region>& blocks) {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        const Region& block = blocks[i];
        if (!contiguous(block)) return false;
        if (i > 0 && block.offset_bytes != blocks[i - 1].offset_bytes + bytes_of(blocks[i - 1])) return false;
    }
    return true;
}

Result<NativeCollective> collective_of(const std::vector<RankPlan>& plans) {
    if (plans.size() == 1 && plans.front().steps.size() == 1) {
        const RankPlan& plan = plans.front();
        const Schedule& schedule = plan.steps.front().schedule;
        auto found = native_collective(schedule);
        const bool reduces = found &&
                             (found->kind == StepKind::all_reduce || found->kind == StepKind::reduce_scatter) &&
                             schedule.scaled.empty() && native_type(plan.dtype) != MPI_DATATYPE_NULL &&
                             count(found->gives.front()) <= std::numeric_limits<int>::max();
        if (reduces) return *found;
    }
    return fail(Code::unsupported,
                "the baseline of MPI's reductions runs one all_reduce, or reduce_scatter in equal blocks, of a type "
                "that MPI adds up");
}

// Collective over the members of the group.
Result<Reducing> make_call(MPI_Comm communicator, const RankPlan& plan, const NativeCollective& collective) {
    const RankStep& step = plan.steps.front();
    const Index element_bytes = size_of(plan.dtype);
    Reducing call;
    call.kind = collective.kind;
    call.type = native_type(plan.dtype);
    call.operation = native_operation(step.schedule.combine);
    RESHARD_ASSIGN(call.group, communicator_of(communicator, collective.members));
    std::vector<Region> gives;
    for (const Box& box : collective.gives) {
        gives.push_back(region_of(step.from, box, element_bytes));
        call.counts.push_back(static_cast<int>(count(box)));
    }
    call.source_offset = gives.front().offset_bytes;
    if (!in_order(gives)) {
        for (std::size_t i = 0; i < gives.size(); ++i) {
            call.packs.emplace_back(gives[i], packed_region(collective.gives[i], element_bytes, call.packed_bytes));
            call.packed_bytes += bytes_of(gives[i]);
        }
    }
    const Region takes = region_of(step.to, collective.takes.front(), element_bytes);
    call.target_offset = takes.offset_bytes;
    if (!contiguous(takes)) {
        call.result_bytes = bytes_of(takes);
        call.unpack.emplace(packed_region(collective.takes.front(), element_bytes, call.packed_bytes), takes);
    }
    return call;
}

class ReductionsBound final : public Bound {
public:
    ReductionsBound(const Reducing& call, Buffers buffers)
        : call_(call), buffers_(buffers), staging_(static_cast<std::size_t>(call.packed_bytes + call.result_bytes)) {}

    Result<std::unique_ptr<Ticket>> start() override {
        const auto begin = std::chrono::steady_clock::now();
        for (const BoxCopy& pack : call_.packs) pack.run(buffers_.source.data(), staging_.data());
        const std::byte* const given =
            call_.packs.empty() ? buffers_.source.data() + call_.source_offset : staging_.data();
        std::byte* const taken =
            call_.unpack ? staging_.data() + call_.packed_bytes : buffers_.target.data() + call_.target_offset;
        RESHARD_CHECK(call(given, taken));
        if (call_.unpack) call_.unpack->run(staging_.data(), buffers_.target.data());
        seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        return std::make_unique<Done>();
    }
    [[nodiscard]] std::vector<double> step_seconds() const override { return {seconds_}; }

private:
    Result<void> call(const std::byte* given, std::byte* taken) {
        if (call_.kind == StepKind::all_reduce)
            return checked(
                MPI_Allreduce(given, taken, call_.counts.front(), call_.type, call_.operation, call_.group.get()),
                "MPI_Allreduce");
        return checked(
            MPI_Reduce_scatter(given, taken, call_.counts.data(), call_.type, call_.operation, call_.group.get()),
            "MPI_Reduce_scatter");
    }

    const Reducing& call_;
    Buffers buffers_;
    std::vector<std::byte> staging_;
    double seconds_ = 0;
};

class ReductionsPrepared final : public Prepared {
public:
    explicit ReductionsPrepared(Reducing call) : call_(std::move(call)) {}
    [[nodiscard]] Index staging_bytes() const override { return call_.packed_bytes + call_.result_bytes; }
    Result<std::unique_ptr<Bound>> bind(std::span<const Buffers> buffers) override {
        return std::make_unique<ReductionsBound>(call_, buffers.front());
    }

private:
    Reducing call_;
};

class ReductionsBackend final : public Base {
public:
    explicit ReductionsBackend(Communicator communicator) : Base(std::move(communicator), false) {}
    ~ReductionsBackend() override { drop_kept(); }
    ReductionsBackend(const ReductionsBackend&) = delete;
    ReductionsBackend& operator=(const ReductionsBackend&) = delete;
    [[nodiscard]] std::string_view name() const override { return "reductions"; }

    Result<std::unique_ptr<Prepared>> prepare(std::vector<RankPlan> plans) override {
        RESHARD_CHECK(meet_to_prepare());
        RESHARD_TRY(const auto& collective, all_succeeded(communicator(), collective_of(plans), plans.size()));
        RESHARD_TRY(auto& made,
                    all_succeeded(communicator(), make_call(communicator(), plans.front(), collective), plans.size()));
        return std::make_unique<ReductionsPrepared>(std::move(made));
    }
};

}  // namespace

Result<std::unique_ptr<Backend>> make_reductions_backend(MPI_Comm communicator) {
    RESHARD_TRY(auto& own, borrow(communicator, {}, "make_reductions_backend", waits_to_reduce));
    auto backend = std::make_unique<ReductionsBackend>(std::move(own));
    RESHARD_CHECK(backend->open(waits_to_reduce));
    return backend;
}

}  // namespace reshard::mpi
