#include "backends/mpi/node_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "backends/mpi/base.hpp"

namespace reshard::mpi {
Result<std::unique_ptr<NodePlan>> NodePlan::make(MPI_Comm communicator, std::shared_ptr<Arena> arena,
                                                 std::span<const ArrayStep> steps, Index window_bytes,
                                                 std::chrono::milliseconds patience) {
    std::unique_ptr<NodePlan> plan(new NodePlan);
    plan->arena_ = std::move(arena);
    auto parts = exchange_parts(communicator, steps);
    const Result<void> met = parts.map([](const Parts&) {});
    if (auto all = all_succeeded(communicator, met, steps.size()); !all) return tl::unexpected(all.error());
    auto board = Board::make(communicator, plan->arena_, board_addresses(steps.size()), patience);
    if (!board) return tl::unexpected(board.error());
    plan->board_ = std::move(*board);
    plan->arrays_.resize(steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
        plan->arrays_[i].moves = steps[i].step != nullptr;
        if (steps[i].step != nullptr) plan->arrays_[i].step = steps[i].step->step;
    }
    std::set<std::size_t> partners;
    for (const Part& part : parts->own) plan->arrays_[part.array].push.add(part.peer, part.source, part.target);
    for (const Part& part : parts->sends) {
        plan->arrays_[part.array].push.add(part.peer, part.source, part.target);
        partners.insert(part.peer);
    }
    for (const Part& part : parts->receives) {
        plan->arrays_[part.array].pull.add(part.peer, part.source, part.target);
        partners.insert(part.peer);
    }
    for (Array& array : plan->arrays_) {
        array.push.arrange();
        array.pull.arrange();
    }
    plan->partners_.assign(partners.begin(), partners.end());
    if (auto made = plan->windows_.make(communicator, plan->arena_, *parts, window_bytes); !made) {
        return tl::unexpected(made.error());
    }
    if (auto chosen = plan->choose_store(communicator, *parts); !chosen) return tl::unexpected(chosen.error());
    return plan;
}

// Streaming stores win where what all ranks of the node write does not fit the cache that they share.
Result<void> NodePlan::choose_store(MPI_Comm communicator, const Parts& parts) {
    Index written = 0;
    for (const auto* some : {&parts.own, &parts.receives}) {
        for (const Part& part : *some) written += bytes_of(part.target);
    }
    Index all = 0;
    const int code = MPI_Allreduce(&written, &all, 1, MPI_INT64_T, MPI_SUM, communicator);
    if (auto done = checked(code, "MPI_Allreduce"); !done) return done;
    store_ = all > last_cache_bytes() / 2 ? Store::streaming : Store::cached;
    int streaming = store_ == Store::streaming ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &streaming, 1, MPI_INT, MPI_MAX, communicator);
    store_ = streaming != 0 ? Store::streaming : Store::cached;
    return {};
}

NodeBuffers NodePlan::bind(std::span<const Buffers> buffers, std::span<const Index> source_bytes,
                           std::span<const Index> target_bytes) {
    NodeBuffers bound{{buffers.begin(), buffers.end()}, {}};
    for (std::size_t i = 0; i < buffers.size(); ++i) {
        bound.addresses.push_back(arena_->find(buffers[i].source.data(), source_bytes[i]).value_or(Address{}));
        bound.addresses.push_back(arena_->find(buffers[i].target.data(), target_bytes[i]).value_or(Address{}));
    }
    return bound;
}

NodeRun::NodeRun(NodePlan& plan, const NodeBuffers& buffers) : plan_(plan), buffers_(buffers), run_(++plan.runs_) {
    Board& board = *plan_.board_;
    for (std::size_t i = 0; i < buffers_.addresses.size(); ++i) published(board.rank(), i) = buffers_.addresses[i];
    board.line(board.rank()).entered.store(run_, std::memory_order_release);
    for (const std::size_t peer : plan_.partners_) board.tell(peer);
}

// A rank may begin its next run while a peer, to which it only sent through a window, still reads what it published for
// this one; it cannot begin the one after that.
Address& NodeRun::published(std::size_t rank, std::size_t index) const {
    return plan_.board_->address(rank, (run_ % 2) * buffers_.addresses.size() + index);
}

// Patience is from when nothing more could be done, whoever drives the run.
Result<bool> NodeRun::wait(const Board::Wanteds& wanted, Board::Need need, bool block) {
    if (wanted.empty()) return true;
    if (!waiting_since_) waiting_since_ = Board::Clock::now();
    auto there = plan_.board_->wait(wanted, need, *waiting_since_, block);
    if (there && *there) waiting_since_.reset();
    return there;
}

Result<bool> NodeRun::advance(bool block) {
    while (phase_ != Phase::over) {
        auto moved = next(block);
        if (!moved) {
            plan_.board_->fail_all(moved.error());
            phase_ = Phase::over;
            return moved;
        }
        if (!*moved) return false;
    }
    return true;
}

// One phase. False when it waits for a peer.
Result<bool> NodeRun::next(bool block) {
    Board& board = *plan_.board_;
    switch (phase_) {
        case Phase::entering: {
            Board::Wanteds entered;
            for (const std::size_t peer : plan_.partners_) entered.push_back({peer, &board.line(peer).entered, run_});
            auto there = wait(entered, Board::Need::all, block);
            if (!there || !*there) return there;
            if (auto done = resolve(); !done) return tl::unexpected(done.error());
            sweep();
            phase_ = Phase::staging;
            return true;
        }
        case Phase::staging: {
            if (plan_.windows_.advance(board, own_sources_, own_targets_, plan_.store_)) waiting_since_.reset();
            if (!plan_.windows_.wanted().empty()) return wait(plan_.windows_.wanted(), Board::Need::any, block);
            store_fence();
            board.line(board.rank()).done.store(run_, std::memory_order_release);
            for (const Board::Wanted& peer : leaving_) board.tell(peer.rank);
            phase_ = Phase::leaving;
            return true;
        }
        case Phase::leaving: {
            auto done = wait(leaving_, Board::Need::all, block);
            if (!done || !*done) return done;
            phase_ = Phase::over;
            return true;
        }
        case Phase::over:
            break;
    }
    return true;
}

Result<std::byte*> NodeRun::reach(const Address& address, std::size_t array, std::size_t peer) const {
    auto reached = plan_.arena_->reach(address);
    if (reached) return reached;
    return fail(Code::backend, fmt::format("array {}, step {}: reaching the memory of rank {}: {}", array,
                                           plan_.arrays_[array].step + 1, peer, reached.error().message));
}

// Which buffers are reached decides, pair by pair and the same on both sides: into the target where it is shared, else
// out of the source where that is, else through the window.
Result<void> NodeRun::resolve() {
    Board& board = *plan_.board_;
    const std::size_t arrays = plan_.arrays_.size();
    targets_.assign(arrays, std::vector<std::byte*>(board.size(), nullptr));
    sources_.assign(arrays, std::vector<const std::byte*>(board.size(), nullptr));
    std::vector<std::vector<char>> to_stage(board.size(), std::vector<char>(arrays));
    std::vector<std::vector<char>> from_stage = to_stage;
    std::vector<bool> direct(board.size());  // one of the two reads or writes the other's buffers
    const auto is_shared = [](const Address& address) { return address.segment.descriptor >= 0; };
    for (std::size_t array = 0; array < arrays; ++array) {
        own_sources_.push_back(buffers_.buffers[array].source.data());
        own_targets_.push_back(buffers_.buffers[array].target.data());
        if (!plan_.arrays_[array].moves) continue;
        targets_[array][board.rank()] = own_targets_.back();
        const bool own_source = is_shared(buffers_.addresses[2 * array]);
        const bool own_target = is_shared(buffers_.addresses[2 * array + 1]);
        for (const std::size_t peer : plan_.partners_) {
            const Address& source = published(peer, 2 * array);
            const Address& target = published(peer, 2 * array + 1);
            if (is_shared(target)) {
                auto reached = reach(target, array, peer);
                if (!reached) return tl::unexpected(reached.error());
                targets_[array][peer] = *reached;
            }
            if (is_shared(source) && !own_target) {
                auto reached = reach(source, array, peer);
                if (!reached) return tl::unexpected(reached.error());
                sources_[array][peer] = *reached;
            }
            to_stage[peer][array] = !is_shared(target) && !own_source;
            from_stage[peer][array] = !own_target && !is_shared(source);
            direct[peer] = direct[peer] || to_stage[peer][array] == 0 || from_stage[peer][array] == 0;
        }
    }
    plan_.windows_.restart(to_stage, from_stage);
    for (const std::size_t peer : plan_.partners_) {
        if (direct[peer]) leaving_.push_back({peer, &board.line(peer).done, run_});
    }
    return {};
}

void NodeRun::sweep() {
    for (std::size_t array = 0; array < plan_.arrays_.size(); ++array) {
        NodePlan::Array& moved = plan_.arrays_[array];
        if (!moved.moves) continue;
        moved.push.push(own_sources_[array], targets_[array], plan_.store_);
        const bool pulls =
            std::ranges::any_of(sources_[array], [](const std::byte* source) { return source != nullptr; });
        if (pulls) moved.pull.pull(own_targets_[array], sources_[array], plan_.store_);
    }
}

}  // namespace reshard::mpi
