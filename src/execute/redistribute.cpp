#include "reshard/redistribute.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "reshard/boxes/nodes.hpp"
#include "reshard/padding.hpp"
#include "reshard/planner/view.hpp"
#include "src/base/apart.hpp"
#include "src/base/try.hpp"
#include "src/execute/padding.hpp"

namespace reshard {
namespace {

Result<void> fits(std::string_view name, std::span<const std::byte> bytes, std::optional<DType> dtype,
                  const Layout& layout, Index rank) {
    if (dtype && *dtype != layout.dtype) {
        return fail(Code::mismatch, fmt::format("the elements of `{}` are {}, those of its layout {}", name,
                                                reshard::name(*dtype), reshard::name(layout.dtype)));
    }
    const Tile own = tile(layout, rank);
    const auto needed = checked_multiply(count(own), size_of(layout.dtype));
    if (needed && static_cast<std::uint64_t>(*needed) == bytes.size()) return {};
    return fail(Code::mismatch, fmt::format("rank {} holds {} elements of {} bytes, `{}` has {} bytes", rank,
                                            count(own), size_of(layout.dtype), name, bytes.size()));
}

Result<void> fit(const Layout& source, const Layout& target, ConstElements in, Elements out, Index rank) {
    RESHARD_CHECK(fits("in", in.bytes, in.dtype, source, rank));
    RESHARD_CHECK(fits("out", out.bytes, out.dtype, target, rank));
    return apart(in.bytes, out.bytes) ? Result<void>() : fail(Code::mismatch, "`in` and `out` overlap in memory");
}

// The question that is planned: the transposed source, and with padding the elements that both ends have.
Result<Problem> problem_of(const Redistribution& move) {
    const auto& fill = move.options.fill;
    RESHARD_TRY(const auto& source, permuted(move.source, move.options.permute));
    if (!fill) return Problem{source, move.target};
    RESHARD_CHECK(is_element_of(move.target, *fill));
    return common_extents(source, move.target);
}

// A transposition is a view of the source, in its memory. The elements that both ends have lie within their tiles.
Storages storages_of(const Redistribution& move, Index rank) {
    const bool pads = move.options.fill.has_value();
    Storages storages = move.storages;
    if (move.options.permute.empty() && !pads) return storages;
    storages.source = permuted(storages.source.value_or(row_major(tile(move.source, rank))), move.options.permute);
    if (pads && !storages.target) storages.target = row_major(tile(move.target, rank));
    return storages;
}

// Null if the move writes all elements of the target.
std::shared_ptr<const Padding> padding_of(const Redistribution& move, Index rank) {
    if (!move.options.fill) return nullptr;
    const auto source = permuted(move.source, move.options.permute);
    Padding padding = padding_of(*source, move.target, rank, *move.options.fill);
    if (padding.kept == padding.extents) return nullptr;
    return std::make_shared<const Padding>(std::move(padding));
}

// Starts a run, and fills what it leaves as it is. On a host the padding is filled while the run is in flight. On a
// device the fill comes before the run in the backend's queue, so the end of the run is the end of both.
template <class Start>
Result<std::unique_ptr<Ticket>> start_padded(Backend& backend, const Padding* padding, Elements out,
                                             const Start& start) {
    if (padding != nullptr && backend.on_device()) RESHARD_CHECK(padding->fill_on(backend, out.bytes));
    Result<std::unique_ptr<Ticket>> run = start();
    if (run && padding != nullptr && !backend.on_device()) padding->fill(out.bytes);
    return run;
}

// The plan of a move, and the move through nodes if that takes less time.
struct Chosen {
    Judged<Plan> plan;
    std::optional<NodeMove> nodes;

    // Ranks that prepare compare the fingerprint. A rank that has prepared already must not agree with them.
    [[nodiscard]] std::uint64_t number() const {
        return ~(nodes ? fingerprint(*nodes) : fingerprint(plan.plan(), plan.execution()));
    }
};

Result<Executor> prepare(const Result<Chosen>& chosen, Backend& backend, const Storages& storages) {
    if (chosen && chosen->nodes) return Executor::prepare_through_nodes(*chosen->nodes, backend, storages);
    return Executor::prepare(chosen.map([](const Chosen& one) { return one.plan; }), backend, storages);
}

}  // namespace

Redistributor::Redistributor(Backend& backend, Options options) : backend_(backend), options_(std::move(options)) {
    options_.capabilities = backend.capabilities();
    options_.limits.memory.donate = false;  // `in` is the caller's
}

Redistributor& Redistributor::of(Backend& backend) {
    if (!backend.kept_) backend.kept_ = std::make_shared<Redistributor>(backend);
    return *static_cast<Redistributor*>(backend.kept_.get());
}

Result<void> Redistributor::redistribute(const Layout& source, const Layout& target, ConstElements in, Elements out,
                                         const MoveOptions& options) {
    const auto move = [&]() -> Result<void> {
        Entry* const known = find(source, target, in, out, options);
        if (known != nullptr && !known->padding) return run_known(*known, in, out);
        RESHARD_TRY(const auto& run, try_start(source, target, in, out, options));
        return run->wait();
    };
    const auto moved = move();
    if (!moved) clear();
    return moved;
}

// Dropping the executors tells the ranks that wait in one of them. After an error all ranks keep the same: nothing.
Result<std::unique_ptr<Ticket>> Redistributor::start(const Layout& source, const Layout& target, ConstElements in,
                                                     Elements out, const MoveOptions& options) {
    auto run = try_start(source, target, in, out, options);
    if (!run) clear();
    return run;
}

// The entry of a pair of layouts that these tiles fit, as the one that was used last. Returns null if no entry does.
Redistributor::Entry* Redistributor::find(const Layout& source, const Layout& target, ConstElements in, Elements out,
                                          const MoveOptions& options) {
    const auto known = std::ranges::find_if(entries_, [&](const Entry& entry) {
        return entry.name.empty() && entry.move.source == source && entry.move.target == target &&
               entry.move.options == options;
    });
    return known != entries_.end() && known->fits(in, out) ? &use(known) : nullptr;
}

// Each call agrees once, whatever happens, so that all ranks learn of an error on one of them.
Result<std::unique_ptr<Ticket>> Redistributor::try_start(const Layout& source, const Layout& target, ConstElements in,
                                                         Elements out, const MoveOptions& options) {
    if (Entry* const known = find(source, target, in, out, options)) return start_known(*known, in, out);
    auto well = validate(source).and_then([&] { return validate(target); });
    if (well) well = fit(source, target, in, out, backend_.rank());
    auto move = well.map([&] { return Redistribution{source, target, {}, options}; });
    RESHARD_CHECK(prepare(std::move(move), {}, 0));
    Entry& entry = entries_.front();
    RESHARD_TRY(const auto& bound, bind(entry.executor, in, out));
    return start_padded(backend_, entry.padding.get(), out, [&] { return bound->start(); });
}

// The sizes of tiles are kept, since a small move takes no longer than it takes to find them.
bool Redistributor::Entry::fits(ConstElements in, Elements out) const {
    return in.bytes.size() == in_bytes && out.bytes.size() == out_bytes &&
           in.dtype.value_or(move.source.dtype) == move.source.dtype &&
           out.dtype.value_or(move.target.dtype) == move.target.dtype && apart(in.bytes, out.bytes);
}

// The agreement of a known pair travels with the run. If `move` fails before it agrees, the other ranks learn of it.
template <class Move>
auto Redistributor::agree_with(const Entry& entry, const Move& move) {
    struct Meeting {
        Backend& backend;
        std::uint64_t number;
        bool over = false;
    } meeting{backend_, entry.number};
    // One reference: an Agreed holds so much without an allocation.
    auto moved = move([&meeting] {
        meeting.over = true;
        return meeting.backend.agree(meeting.number);
    });
    if (!moved && !meeting.over) static_cast<void>(backend_.agree(tl::unexpected(moved.error())));
    return moved;
}

Result<std::unique_ptr<Ticket>> Redistributor::start_known(Entry& entry, ConstElements in, Elements out) {
    return agree_with(entry, [&](const Agreed& agree) {
        return bind(entry.executor, in, out).and_then([&](const auto& bound) {
            return start_padded(backend_, entry.padding.get(), out, [&] { return bound->start_if(agree); });
        });
    });
}

Result<void> Redistributor::run_known(Entry& entry, ConstElements in, Elements out) {
    return agree_with(entry, [&](const Agreed& agree) -> Result<void> {
        RESHARD_TRY(const auto workspace, workspace_of(entry.executor));
        return entry.executor.run_if(Buffers{in.bytes, out.bytes, workspace}, agree);
    });
}

Result<std::unique_ptr<Bound>> Redistributor::bind(Executor& executor, ConstElements in, Elements out) {
    RESHARD_TRY(const auto workspace, workspace_of(executor));
    return executor.bind(Buffers{in.bytes, out.bytes, workspace});
}

// Ranks bring different numbers if one has not kept the move, or if its name means another move now. Then all prepare
// anew. Calls are numbered, since their order is the same on all ranks.
Result<Executor*> Redistributor::executor_of(std::string_view name,
                                             const std::function<Result<Redistribution>()>& ask) {
    ++calls_;
    const auto known = std::ranges::find(entries_, name, &Entry::name);
    const auto agreed = backend_.agree(known == entries_.end() ? 0 : known->number);
    if (agreed && known != entries_.end()) return &use(known).executor;
    const bool anew = agreed || agreed.error().code == Code::mismatch;
    auto made = anew ? prepare(ask(), name, calls_) : tl::unexpected(agreed.error());
    if (!made) clear();
    return made;
}

Redistributor::Entry& Redistributor::use(std::list<Entry>::iterator known) {
    entries_.splice(entries_.begin(), entries_, known);
    return entries_.front();
}

Result<Executor*> Redistributor::prepare(Result<Redistribution> move, std::string_view name, std::uint64_t number) {
    const auto made = move.and_then([&](const Redistribution& one) -> Result<Chosen> {
        RESHARD_TRY(const auto& problem, problem_of(one));
        Options options = options_;
        options.cast = options.cast || one.options.cast;
        RESHARD_TRY(const auto& plan, plans_.synthesize(problem, options));
        return Chosen{plan, faster_through_nodes(problem, plan.picoseconds, options)};
    });
    if (made && entries_.size() == executors_max) entries_.pop_back();
    const Storages storages = made ? storages_of(*move, backend_.rank()) : Storages{};
    RESHARD_TRY(auto& executor, reshard::prepare(made, backend_, storages));
    if (name.empty()) number = made->number();
    const auto bytes = [&](const Layout& layout) {
        return tile_count(layout, backend_.rank()) * static_cast<std::size_t>(size_of(layout.dtype));
    };
    const std::size_t in_bytes = bytes(move->source);
    const std::size_t out_bytes = bytes(move->target);
    auto padding = padding_of(*move, backend_.rank());
    entries_.push_front(
        {std::move(*move), std::string(name), number, in_bytes, out_bytes, std::move(padding), std::move(executor)});
    return &entries_.front().executor;
}

Result<std::span<std::byte>> Redistributor::workspace_of(const Executor& executor) {
    const Index needed = executor.workspace_bytes();
    if (needed == 0) return std::span<std::byte>();
    if (workspace_bytes() < needed) {
        workspace_.reset();
        RESHARD_ASSIGN(workspace_, backend_.allocate(needed));
    }
    return workspace_->bytes().first(static_cast<std::size_t>(needed));
}

Index Redistributor::workspace_bytes() const { return workspace_ ? std::ssize(workspace_->bytes()) : 0; }

void Redistributor::clear() {
    while (!entries_.empty()) entries_.pop_back();
    workspace_.reset();
}

Result<void> redistribute(Backend& backend, const Layout& source, const Layout& target, ConstElements in, Elements out,
                          const MoveOptions& options) {
    return Redistributor::of(backend).redistribute(source, target, in, out, options);
}

void refuse(Backend& backend, const Error& why) {
    static_cast<void>(backend.agree(tl::unexpected(why)));
    clear(backend);
}

void clear(Backend& backend) { Redistributor::of(backend).clear(); }

}  // namespace reshard
