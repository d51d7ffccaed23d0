#include "backends/nccl/launch/launch_list.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/nccl/base/features.hpp"
#include "backends/nccl/launch/device_table.hpp"
#include "src/base/try.hpp"

namespace reshard::nccl {

// Writes the actions of a run. A step in one piece stays on the queue. The pieces of any other step travel on another
// stream, while the queue packs the next piece and unpacks the last one.
class Writer {
public:
    explicit Writer(const Ready& ready) : ready_(ready) {}

    Result<LaunchList> write(std::span<const Buffers> buffers) {
        for (std::size_t array = 0; array < ready_.arrays.size(); ++array) {
            take_bases(buffers[array]);
            for (const StepProgram& step : ready_.arrays[array]) {
                number_ = script_.steps_.size();
                script_.steps_.push_back(&step);
                Result<void> written = write_step(step);
                if (written) written = place(step.after, bases_);
                if (!written) {
                    return fail(written.error().code, fmt::format("{}: {}", step.name, written.error().message));
                }
                add(On::queue, StepEnds{});
            }
        }
        script_.launches_ = std::move(placed_.launches);
        RESHARD_ASSIGN(script_.boxes_, upload(*ready_.base, placed_.table));
        return std::move(script_);
    }

private:
    void take_bases(const Buffers& buffers) {
        // If a source is not donated, no placed set writes through this pointer.
        std::byte* const source =
            buffers.donated.empty() ? const_cast<std::byte*>(buffers.source.data()) : buffers.donated.data();
        bases_ = {source, buffers.target.data(), buffers.workspace.data(),
                  ready_.staging ? ready_.staging->start() : nullptr};
    }
    [[nodiscard]] Bases bases_of(std::size_t piece) const {
        Bases bases = bases_;
        if (ready_.staging && piece % slots_max == 1)
            bases[static_cast<std::size_t>(BufferId::staging)] += ready_.slot_bytes;
        return bases;
    }

    template <class What>
    void add(On on, What what) {
        script_.actions_.push_back({number_, on, std::move(what)});
    }

    Result<void> place(const CopySet& set, const Bases& bases) {
        if (set.empty()) return {};
        const std::size_t begin = placed_.launches.size();
        RESHARD_CHECK(set.place(bases, placed_));
        add(On::queue, Launches{begin, placed_.launches.size()});
        return {};
    }

    Result<void> write_step(const StepProgram& step) {
        for (const CopySet& set : step.before) {
            RESHARD_CHECK(place(set, bases_));
        }
        if (step.pieces.size() > 1) return write_pieces(step);
        for (const Piece& piece : step.pieces) {
            RESHARD_CHECK(place(piece.packs, bases_));
            travel(step, piece, On::queue, bases_);
            RESHARD_CHECK(unpack(piece, bases_));
        }
        return {};
    }

    // The other stream waits until a piece is packed. Its slot is free by then. The queue had waited for the former
    // piece in that slot to arrive, and had unpacked it, before it packed this piece.
    Result<void> write_pieces(const StepProgram& step) {
        RESHARD_CHECK(pack(step, 0));
        for (std::size_t p = 0; p < step.pieces.size(); ++p) {
            const Bases bases = bases_of(p);
            add(On::transfers, Wait{ready_.packed[p % slots_max].get()});
            travel(step, step.pieces[p], On::transfers, bases);
            add(On::transfers, Record{ready_.moved[p % slots_max].get()});
            if (p + 1 < step.pieces.size()) {
                RESHARD_CHECK(pack(step, p + 1));
            }
            add(On::queue, Wait{ready_.moved[p % slots_max].get()});
            RESHARD_CHECK(unpack(step.pieces[p], bases));
        }
        return {};
    }

    Result<void> pack(const StepProgram& step, std::size_t piece) {
        RESHARD_CHECK(place(step.pieces[piece].packs, bases_of(piece)));
        add(On::queue, Record{ready_.packed[piece % slots_max].get()});
        return {};
    }

    Result<void> unpack(const Piece& piece, const Bases& bases) {
        for (const CopySet& set : piece.unpacks) {
            RESHARD_CHECK(place(set, bases));
        }
        return {};
    }

    static std::byte* at(const Run& run, const Bases& bases) { return base_of(bases, run.where) + run.offset_bytes; }

    void travel(const StepProgram& step, const Piece& piece, On on, const Bases& bases) {
        if (piece.collective) {
            const Collective& call = *piece.collective;
            add(on, Call{call, at(call.gives, bases), at(call.takes, bases), step.group->communicator});
        }
        if (piece.sends.empty() && piece.receives.empty()) return;
        Exchange exchange;
        for (const Message& send : piece.sends) exchange.sends.push_back(end_of(send, bases));
        for (const Message& receive : piece.receives) exchange.receives.push_back(end_of(receive, bases));
        add(on, std::move(exchange));
    }
    static Exchange::End end_of(const Message& message, const Bases& bases) {
        return {message.peer, at(message.run, bases), static_cast<std::size_t>(message.run.bytes)};
    }

    const Ready& ready_;
    LaunchList script_;
    Placed placed_;
    Bases bases_{};
    std::size_t number_ = 0;
};

namespace {

// An asynchronous fault belongs to the first step that has not ended, which may come before the step that sees it.
std::size_t first_open(std::span<const Event> step_ends, std::size_t issued) {
    for (std::size_t step = 0; step < issued && !step_ends.empty(); ++step) {
        if (cudaEventQuery(step_ends[step + 1].get()) == cudaErrorNotReady) return step;
    }
    return issued;
}

ncclResult_t run_call(const Call& call, cudaStream_t stream) {
    const Collective& of = call.collective;
    const ncclComm_t communicator = call.communicator->get();
    switch (of.native) {
        case StepKind::all_gather:
            return ncclAllGather(call.gives, call.takes, of.count, of.type, communicator, stream);
        case StepKind::reduce_scatter:
            return ncclReduceScatter(call.gives, call.takes, of.count, of.type, of.op, communicator, stream);
        case StepKind::all_reduce:
            return ncclAllReduce(call.gives, call.takes, of.count, of.type, of.op, communicator, stream);
        case StepKind::all_to_all:
#if RESHARD_NCCL_HAS_ALL_TO_ALL
            return ncclAlltoAll(call.gives, call.takes, of.count, of.type, communicator, stream);
#endif
        case StepKind::slice:
        case StepKind::permute:
        case StepKind::zero_fill:
        case StepKind::exchange:
        case StepKind::view:
        case StepKind::cast:
            break;
    }
    return ncclInvalidUsage;  // no native collective runs such a step
}

template <class... Cases>
struct Match : Cases... {
    using Cases::operator()...;
};
template <class... Cases>
Match(Cases...) -> Match<Cases...>;

}  // namespace

Result<LaunchList> LaunchList::write(const Ready& ready, std::span<const Buffers> buffers) {
    return Writer(ready).write(buffers);
}

Result<void> LaunchList::issue_one(const Action& action, const Ready& ready, cudaStream_t stream) const {
    const Base& base = *ready.base;
    const auto timeout = base.options().timeout;
    return std::visit(
        Match{[&](const Launches& range) {
                  return nccl::issue(std::span(launches_).subspan(range.begin, range.end - range.begin), boxes_,
                                     stream);
              },
              [&](const Exchange& exchange) -> Result<void> {
                  RESHARD_CHECK(run_exchange(exchange, base.world()->get(), stream));
                  return settle(base.world()->get(), timeout);
              },
              [&](const Call& call) -> Result<void> {
                  RESHARD_CHECK(checked(run_call(call, stream), call_name(call.collective.native)));
                  return settle(call.communicator->get(), timeout);
              },
              [&](const Record& record) { return checked(cudaEventRecord(record.event, stream), "cudaEventRecord"); },
              [&](const Wait& wait) {
                  return checked(cudaStreamWaitEvent(stream, wait.event, 0), "cudaStreamWaitEvent");
              },
              [](const StepEnds&) -> Result<void> { return {}; }},
        action.what);
}

Result<void> LaunchList::issue(const Ready& ready, cudaStream_t queue, std::span<const Event> step_ends) const {
    for (const Action& action : actions_) {
        const cudaStream_t stream = action.on == On::queue ? queue : ready.transfers->get();
        Result<void> done = issue_one(action, ready, stream);
        if (std::holds_alternative<StepEnds>(action.what) && !step_ends.empty()) {
            done = checked(cudaEventRecord(step_ends[action.step + 1].get(), queue), "cudaEventRecord");
        }
        if (done) continue;
        const Result<void> fault = ready.base->fault();
        const std::size_t step = fault ? action.step : first_open(step_ends, action.step);
        const Error& why = fault ? done.error() : fault.error();
        return fail(why.code, fmt::format("{}: {}", describe_step(step), why.message));
    }
    return {};
}

std::string LaunchList::describe_step(std::size_t step) const {
    constexpr std::size_t named_max = 8;
    const StepProgram& one = *steps_[step];
    if (one.peers.empty()) return one.name;
    const std::span<const Index> named = std::span(one.peers).first(std::min(named_max, one.peers.size()));
    return fmt::format("{}, with {} {}{}", one.name, one.peers.size() == 1 ? "rank" : "ranks", fmt::join(named, ", "),
                       named.size() < one.peers.size() ? ", ..." : "");
}

}  // namespace reshard::nccl
