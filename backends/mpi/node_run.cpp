#include "backends/mpi/node_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "backends/mpi/base.hpp"

namespace reshard::mpi {
namespace {

constexpr unsigned round_bits = 32;  // counters of rounds carry the run above them, so they only grow

template <class Value>
Result<std::vector<Value>> gathered(MPI_Comm communicator, const Value& mine) {
    std::vector<Value> all(static_cast<std::size_t>(size_of_communicator(communicator)));
    const int code = MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, communicator);
    if (auto done = checked(code, "MPI_Allgather"); !done) return tl::unexpected(done.error());
    return all;
}

std::vector<Part> parts_of(const std::vector<Part>& parts, std::size_t peer) {
    std::vector<Part> with_peer;
    std::ranges::copy_if(parts, std::back_inserter(with_peer), [&](const Part& part) { return part.peer == peer; });
    return with_peer;
}

std::vector<Index> bytes_by_peer(const std::vector<Part>& parts, std::size_t ranks) {
    std::vector<Index> bytes(ranks);
    for (const Part& part : parts) bytes[part.peer] += bytes_of(part.target);
    return bytes;
}

}  // namespace

Result<std::unique_ptr<NodePlan>> NodePlan::make(MPI_Comm communicator, std::shared_ptr<Arena> arena,
                                                 std::span<const ArrayStep> steps, Index window_bytes,
                                                 std::chrono::milliseconds patience) {
    std::unique_ptr<NodePlan> plan(new NodePlan);
    plan->arena_ = std::move(arena);
    auto parts = exchange_parts(communicator, steps);
    const Result<void> met = parts.map([](const Parts&) {});
    if (auto all = all_succeeded(communicator, met, steps.size()); !all) return tl::unexpected(all.error());
    auto board = Board::make(communicator, plan->arena_, 2 * steps.size(), patience);
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
    if (auto made = plan->make_windows(communicator, *parts, window_bytes); !made) return tl::unexpected(made.error());
    if (auto chosen = plan->choose_store(communicator, *parts); !chosen) return tl::unexpected(chosen.error());
    return plan;
}

Result<void> NodePlan::make_windows(MPI_Comm communicator, const Parts& parts, Index window_bytes) {
    const std::size_t ranks = board_->size();
    const std::vector<WindowSlot> slots = deal_window(bytes_by_peer(parts.receives, ranks), window_bytes);
    std::vector<WindowSlot> granted(ranks);  // in the peers' windows
    const int code = MPI_Alltoall(slots.data(), sizeof(WindowSlot), MPI_BYTE, granted.data(), sizeof(WindowSlot),
                                  MPI_BYTE, communicator);
    if (auto done = checked(code, "MPI_Alltoall"); !done) return done;
    Address place;
    Result<void> made;
    if (!parts.receives.empty()) {
        const Index bytes = 2 * slots.front().half_bytes;
        auto window = arena_->take(bytes);
        if (!window) {
            made = tl::unexpected(window.error());
        } else {
            window_ = std::move(*window);
            place = arena_->find(window_->bytes().data(), bytes).value_or(Address{});
        }
    }
    const auto places = gathered(communicator, place);
    if (!places) return tl::unexpected(places.error());
    for (const std::size_t peer : partners_) {
        if (granted[peer].bytes == 0 || !made) continue;
        auto reached = arena_->reach((*places)[peer]);
        if (!reached) {
            made = tl::unexpected(reached.error());
            break;
        }
        outgoing_.push_back({peer, Pieces(parts_of(parts.sends, peer)), granted[peer], *reached});
    }
    for (std::size_t peer = 0; peer < ranks && made; ++peer) {
        if (slots[peer].bytes == 0) continue;
        incoming_.push_back({peer, Pieces(parts_of(parts.receives, peer)), slots[peer], window_->bytes().data()});
    }
    return all_succeeded(communicator, made, 1);
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
    for (std::size_t i = 0; i < buffers_.addresses.size(); ++i) board.address(board.rank(), i) = buffers_.addresses[i];
    board.line(board.rank()).entered.store(run_, std::memory_order_release);
    board.ring();
}

Board::Wanteds NodeRun::all_partners(std::atomic<std::uint64_t> BoardLine::*counter) const {
    Board::Wanteds wanted;
    for (const std::size_t peer : plan_.partners_) wanted.push_back({peer, counter, run_});
    return wanted;
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
            if (!plan_.partners_.empty()) {
                auto entered = board.wait(all_partners(&BoardLine::entered), {}, block);
                if (!entered || !*entered) return entered;
            }
            if (auto done = resolve(); !done) return tl::unexpected(done.error());
            sweep();
            phase_ = Phase::staging;
            return true;
        }
        case Phase::staging: {
            auto staged = stage(block);
            if (!staged || !*staged) return staged;
            store_fence();
            board.line(board.rank()).done.store(run_, std::memory_order_release);
            board.ring();
            phase_ = Phase::leaving;
            return true;
        }
        case Phase::leaving: {
            if (!plan_.partners_.empty()) {
                auto done = board.wait(all_partners(&BoardLine::done), {}, block);
                if (!done || !*done) return done;
            }
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
    const auto is_shared = [](const Address& address) { return address.segment.descriptor >= 0; };
    for (std::size_t array = 0; array < arrays; ++array) {
        own_sources_.push_back(buffers_.buffers[array].source.data());
        own_targets_.push_back(buffers_.buffers[array].target.data());
        if (!plan_.arrays_[array].moves) continue;
        targets_[array][board.rank()] = own_targets_.back();
        const bool own_source = is_shared(buffers_.addresses[2 * array]);
        const bool own_target = is_shared(buffers_.addresses[2 * array + 1]);
        for (const std::size_t peer : plan_.partners_) {
            const Address& source = board.address(peer, 2 * array);
            const Address& target = board.address(peer, 2 * array + 1);
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
        }
    }
    for (NodePlan::Pair& pair : plan_.outgoing_) pair.pieces.restart(to_stage[pair.peer]);
    for (NodePlan::Pair& pair : plan_.incoming_) pair.pieces.restart(from_stage[pair.peer]);
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

// Fills ahead of the peers by at most the two halves of a window, and drains as they fill.
Result<bool> NodeRun::stage(bool block) {
    Board& board = *plan_.board_;
    const std::uint64_t base = run_ << round_bits;
    while (true) {
        Board::Wanteds emptied;
        Board::Wanteds filled;
        bool fills = false;
        for (const NodePlan::Pair& pair : plan_.outgoing_) {
            if (pair.pieces.finished()) continue;
            fills = true;
            if (filled_ >= 2) emptied.push_back({pair.peer, &BoardLine::drained, base + filled_ - 1});
        }
        for (const NodePlan::Pair& pair : plan_.incoming_) {
            if (!pair.pieces.finished()) filled.push_back({pair.peer, &BoardLine::filled, base + drained_ + 1});
        }
        if (!fills && filled.empty()) return true;
        if (fills && (emptied.empty() || board.all_there(emptied))) {
            fill();
        } else if (board.all_there(filled)) {
            drain();
        } else {
            auto ready = board.wait(emptied, filled, block);
            if (!ready || !*ready) return ready;
        }
    }
}

void NodeRun::fill() {
    Board& board = *plan_.board_;
    for (NodePlan::Pair& pair : plan_.outgoing_) {
        if (pair.pieces.finished()) continue;
        const Index half = static_cast<Index>(filled_ % 2) * pair.slot.half_bytes;
        pair.pieces.pack(pair.window + half + pair.slot.offset, pair.slot.bytes, own_sources_);
    }
    board.line(board.rank()).filled.store((run_ << round_bits) + ++filled_, std::memory_order_release);
    board.ring();
}

void NodeRun::drain() {
    Board& board = *plan_.board_;
    for (NodePlan::Pair& pair : plan_.incoming_) {
        if (pair.pieces.finished()) continue;
        const Index half = static_cast<Index>(drained_ % 2) * pair.slot.half_bytes;
        pair.pieces.unpack(pair.window + half + pair.slot.offset, pair.slot.bytes, own_targets_, plan_.store_);
    }
    board.line(board.rank()).drained.store((run_ << round_bits) + ++drained_, std::memory_order_release);
    board.ring();
}

}  // namespace reshard::mpi
