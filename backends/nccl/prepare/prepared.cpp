#include "backends/nccl/prepare/prepared.hpp"

#include <fmt/format.h>

#include <set>

#include "backends/nccl/base/features.hpp"
#include "backends/nccl/prepare/agreement.hpp"
#include "src/base/try.hpp"

namespace reshard::nccl {
namespace {

constexpr Index page = 4096;  // the alignment of windows

// True if the members are all ranks in order. The whole communicator then serves: another one would only take memory.
bool is_world(const Base& base, const NcclCollective& regular) {
    if (static_cast<Index>(regular.members.size()) != base.size()) return false;
    for (std::size_t i = 0; i < regular.members.size(); ++i) {
        if (regular.members[i] != static_cast<Index>(i)) return false;
    }
    return true;
}

class ReadyMaker {
public:
    ReadyMaker(Base& base, const std::vector<RankPlan>& plans) : base_(base), plans_(plans) { ready_->base = &base; }

    Result<std::unique_ptr<Ready>> make() {
        RESHARD_ASSIGN(agreed_, agree_on_steps(base_, plans_));
        RESHARD_CHECK(make_groups());
        make_steps();
        RESHARD_CHECK(base_.all_succeeded(make_queues()));
        RESHARD_CHECK(make_staging());
        RESHARD_CHECK(base_.counting([&] { return connect(); }));
        return std::move(ready_);
    }

private:
    // Collective: ranks meet here step by step. If a group finds no room, its step uses the whole communicator.
    Result<void> make_groups() {
        for (StepAgreed& step : agreed_) {
            groups_.emplace_back();
            if (!step.native) continue;
            std::uint64_t whole = !step.agreed.regular || is_world(base_, *step.agreed.regular) ? 1 : 0;
            RESHARD_CHECK(base_.vote(std::span(&whole, 1), ncclMin));
            if (whole != 0) {
                groups_.back() = std::make_shared<Group>(Group{base_.world()});
                continue;
            }
            const std::vector<Index> no_members;
            RESHARD_TRY(auto& made,
                        base_.group(step.partition, step.agreed.regular ? step.agreed.regular->members : no_members));
            if (made == nullptr) {
                step.native = false;
                step.agreed = {std::nullopt, false, step.message_elements_max};
                continue;
            }
            groups_.back() = made;
            ready_->groups.push_back(std::move(made));
        }
        return {};
    }

    void make_steps() {
        std::size_t ordinal = 0;
        for (std::size_t array = 0; array < plans_.size(); ++array) {
            std::vector<StepProgram>& steps = ready_->arrays.emplace_back();
            for (const RankStep& step : plans_[array].steps) {
                steps.push_back(make_step_program(step, array, agreed_[ordinal].agreed));
                if (agreed_[ordinal].agreed.regular) steps.back().group = groups_[ordinal];
                ++ordinal;
            }
        }
    }

    Result<void> make_queues() {
        bool in_pieces = false;
        for (const auto& steps : ready_->arrays) {
            for (const StepProgram& step : steps) in_pieces = in_pieces || step.pieces.size() > 1;
        }
        if (!in_pieces) return {};
        RESHARD_ASSIGN(ready_->transfers, Stream::make());
        for (auto* events : {&ready_->packed, &ready_->moved}) {
            for (Index slot = 0; slot < slots_max; ++slot) {
                RESHARD_TRY(auto& event, Event::make(false));
                events->push_back(std::move(event));
            }
        }
        return {};
    }

    // The step that needs the most staging, for the error.
    [[nodiscard]] const StepProgram* neediest() const {
        const StepProgram* most = nullptr;
        for (const auto& steps : ready_->arrays) {
            for (const StepProgram& step : steps) {
                if (most == nullptr || step.slot_bytes > most->slot_bytes) most = &step;
            }
        }
        return most;
    }

    // With windows every rank takes as much as the rank that needs the most.
    Result<void> make_staging() {
        Index slots = 1;
        for (const auto& steps : ready_->arrays) {
            for (const StepProgram& step : steps) {
                ready_->slot_bytes = std::max(ready_->slot_bytes, (step.slot_bytes + page - 1) / page * page);
                if (step.slot_bytes > 0 && step.pieces.size() > 1) slots = slots_max;
            }
        }
        const Index own = ready_->slot_bytes * slots;
        auto most = static_cast<std::uint64_t>(own);
        RESHARD_CHECK(base_.vote(std::span(&most, 1), ncclMax));
        const bool windows = base_.options().windows && RESHARD_NCCL_HAS_WINDOWS != 0;
        ready_->staging_bytes = windows ? static_cast<Index>(most) : own;
        const auto taken = [&]() -> Result<void> {
            if (ready_->staging_bytes == 0) return {};
            auto made = Staging::make(ready_->staging_bytes);
            if (!made) {
                const StepProgram* step = neediest();
                return fail(made.error().code,
                            fmt::format("{}: {} bytes of staging: {}", step != nullptr ? step->name : "no step",
                                        ready_->staging_bytes, made.error().message));
            }
            ready_->staging = std::move(*made);
            return {};
        }();
        RESHARD_CHECK(base_.all_succeeded(taken));
        if (!windows || ready_->staging_bytes == 0) return {};
        return base_.all_succeeded(add_windows());
    }

    Result<void> add_windows() {
        std::set<Communicator*> known;
        for (const auto& steps : ready_->arrays) {
            for (const StepProgram& step : steps) {
                if (!step.group || !known.insert(step.group->communicator.get()).second) continue;
                auto done = ready_->staging->add_window(step.group->communicator, base_.options().timeout);
                if (!done) return fail(done.error().code, fmt::format("{}: {}", step.name, done.error().message));
            }
        }
        return {};
    }

    // NCCL takes memory when two ranks first meet. One byte each way now keeps this out of the first start.
    Result<void> connect() {
        std::set<int> to;
        std::set<int> from;
        for (const auto& steps : ready_->arrays) {
            for (const StepProgram& step : steps) {
                for (const Piece& piece : step.pieces) {
                    for (const Message& send : piece.sends) to.insert(send.peer);
                    for (const Message& receive : piece.receives) from.insert(receive.peer);
                }
            }
        }
        const auto issued = [&]() -> Result<void> {
            const ncclComm_t world = base_.world()->get();
            Exchange bytes;
            for (const int peer : to) bytes.sends.push_back({peer, base_.scratch(), 1});
            for (const int peer : from) bytes.receives.push_back({peer, base_.scratch() + 1, 1});
            RESHARD_CHECK(run_exchange(bytes, world, base_.stream()));
            RESHARD_CHECK(settle(world, base_.options().timeout));
            return connect_groups();
        }();
        if (!issued) {
            base_.abort(issued.error());
            return fail(issued.error().code, fmt::format("while ranks connect: {}", issued.error().message));
        }
        return base_.await(base_.stream());
    }

    Result<void> connect_groups() {
        std::set<ncclComm_t> known;
        for (const auto& steps : ready_->arrays) {
            for (const StepProgram& step : steps) {
                if (!step.group || !known.insert(step.group->communicator->get()).second) continue;
                const ncclComm_t group = step.group->communicator->get();
                const auto code =
                    ncclAllReduce(base_.scratch(), base_.scratch(), 1, ncclUint8, ncclSum, group, base_.stream());
                RESHARD_CHECK(checked(code, "ncclAllReduce"));
                RESHARD_CHECK(settle(group, base_.options().timeout));
            }
        }
        return {};
    }

    Base& base_;
    const std::vector<RankPlan>& plans_;
    std::unique_ptr<Ready> ready_ = std::make_unique<Ready>();
    std::vector<StepAgreed> agreed_;
    std::vector<std::shared_ptr<Group>> groups_;  // one per step
};

}  // namespace

Result<std::unique_ptr<Staging>> Staging::make(Index bytes) {
    auto made = std::make_unique<Staging>();
    made->bytes_ = bytes;
#if RESHARD_NCCL_HAS_MEMORY
    const ncclResult_t code = ncclMemAlloc(&made->start_, static_cast<std::size_t>(bytes));
    Result<void> done = checked(code, "ncclMemAlloc");
#else
    Result<void> done = checked(cudaMalloc(&made->start_, static_cast<std::size_t>(bytes)), "cudaMalloc");
#endif
    if (done) return made;
    made->start_ = nullptr;
    const cudaError_t why = cudaGetLastError();  // this also clears it; it says more than NCCL does
    if (why == cudaSuccess) return tl::unexpected(done.error());
    return fail(Code::backend, fmt::format("{}: {}", done.error().message, cudaGetErrorString(why)));
}

Result<void> Staging::add_window([[maybe_unused]] const std::shared_ptr<Communicator>& communicator,
                                 [[maybe_unused]] std::chrono::milliseconds timeout) {
#if RESHARD_NCCL_HAS_WINDOWS
    ncclWindow_t window = nullptr;
    const ncclResult_t code = ncclCommWindowRegister(communicator->get(), start_, static_cast<std::size_t>(bytes_),
                                                     &window, NCCL_WIN_COLL_SYMMETRIC);
    RESHARD_CHECK(checked(code, "ncclCommWindowRegister"));
    RESHARD_CHECK(settle(communicator->get(), timeout));
    if (window != nullptr) windows_.emplace_back(communicator, window);
#endif
    return {};
}

Staging::~Staging() {
#if RESHARD_NCCL_HAS_WINDOWS
    for (const auto& [communicator, window] : windows_) {
        if (!communicator->aborted()) ncclCommWindowDeregister(communicator->get(), window);
    }
#endif
#if RESHARD_NCCL_HAS_MEMORY
    if (start_ != nullptr) ncclMemFree(start_);
#else
    if (start_ != nullptr) cudaFree(start_);
#endif
}

Result<std::unique_ptr<Ready>> make_ready(Base& base, const std::vector<RankPlan>& plans) {
    return ReadyMaker(base, plans).make();
}

}  // namespace reshard::nccl
