// The MPI backend: decides which arrays move through shared memory and which by messages, and runs both.
#include "reshard/backends/mpi.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "backends/mpi/base.hpp"
#include "backends/mpi/base/agree.hpp"
#include "backends/mpi/base/transport.hpp"
#include "backends/mpi/messages/messages.hpp"
#include "backends/mpi/shm/node_board.hpp"
#include "backends/mpi/shm/registry.hpp"
#include "backends/mpi/shm/shm_copy.hpp"
#include "src/base/try.hpp"
#include "src/tables/capabilities.hpp"

namespace reshard::mpi {
namespace {

// The step that moves a whole array from its source to its target by copies alone, if there is one.
const RankStep* one_move(const RankPlan& plan) {
    if (plan.steps.size() != 1) return nullptr;
    const RankStep& step = plan.steps.front();
    const bool copies = step.schedule.combine == Combine::copy && step.schedule.fills.empty();
    return copies ? &step : nullptr;
}

std::vector<Index> bytes_of_plans(const std::vector<RankPlan>& plans, Index RankPlan::*bytes) {
    std::vector<Index> all;
    for (const RankPlan& plan : plans) all.push_back(plan.*bytes);
    return all;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Result<void> judge(const Options& options) {
    using Named = std::pair<std::string_view, Index>;
    for (const auto& [name, value] :
         {Named("ranks_per_node", options.ranks_per_node), Named("bounce_bytes", options.bounce_bytes),
          Named("piece_bytes", options.piece_bytes), Named("staging_bytes", options.staging_bytes)}) {
        if (value < 0) return fail(Code::usage, fmt::format("mpi::Options::{} is negative: {}", name, value));
    }
    if (options.timeout.count() > 0) return {};
    return fail(Code::usage, fmt::format("mpi::Options::timeout is not more than 0: {} ms", options.timeout.count()));
}

class MpiPrepared final : public Prepared {
public:
    MpiPrepared(const Roll& roll, Communicator communicator)
        : communicator_(std::move(communicator)), standing_(roll) {}
    ~MpiPrepared() override {
        for (Communicator& group : messages_.take_communicators()) standing_.own(std::move(group));
        standing_.own(std::move(communicator_));
    }

    // Collective. The nodes outlive it.
    Result<void> make(std::vector<RankPlan> plans, const std::shared_ptr<Arena>& arena, const NodeMap& nodes,
                      const Options& options, Index staging_bytes_max) {
        RESHARD_CHECK(make_ways(std::move(plans), arena, nodes, options, staging_bytes_max));
        std::set<int> peers;
        if (!messages_.empty()) {
            messages_.add_peers(peers);
            messages_.add_signals(signals_);
        }
        if (node_) signals_.push_back(&node_->signals());
        standing_.meet({peers.begin(), peers.end()});
        return {};
    }

    [[nodiscard]] Index staging_bytes() const override {
        return messages_.staging_bytes() + (node_ ? node_->held_bytes() : 0);
    }
    [[nodiscard]] std::string describe() const override;
    Result<std::unique_ptr<Bound>> bind(std::span<const Buffers> buffers) override;

    void abandon(const Error& why) override {
        for (Signals* signals : signals_) signals->fail_all(why);
        standing_.abandon(why);
    }
    void finish_run() {
        for (Signals* signals : signals_) signals->finish_run();
        standing_.finish();
    }
    void report_failure(const Error& why) override {
        excused_ = true;
        for (Signals* signals : signals_) signals->report_failure(why);
        standing_.report_failure(why);
    }

private:
    friend class BothRuns;
    friend class MpiBound;

    void begin_run() {
        standing_.start();
        if (!std::exchange(excused_, false)) return;
        for (Signals* signals : signals_) signals->take_back_excuse();
    }

    Result<void> make_ways(std::vector<RankPlan> plans, const std::shared_ptr<Arena>& arena, const NodeMap& nodes,
                           const Options& options, Index staging_bytes_max) {
        plans_ = std::move(plans);
        RESHARD_CHECK(vote(nodes.is_all()));
        if (std::ranges::find(moves_, 1) != moves_.end()) {
            std::vector<ArrayStep> steps;
            for (std::size_t i = 0; i < plans_.size(); ++i) {
                steps.push_back({moves_[i] != 0 ? one_move(plans_[i]) : nullptr});
            }
            RESHARD_ASSIGN(node_, ShmCopyPlan::make(communicator_.get(), arena, steps, options));
        }
        std::vector<MessagePlan> rest;
        for (std::size_t i = 0; i < plans_.size(); ++i) {
            if (moves_[i] == 0) rest.push_back({i, &plans_[i]});
        }
        if (rest.empty()) return {};
        const Index room = staging_bytes_max - (node_ ? node_->held_bytes() : 0);
        return messages_.make({communicator_.get(), &standing_, &nodes, arena, options, room}, rest, plans_.size());
    }

    // An array moves through shared memory where it does so on every rank.
    Result<void> vote(bool node) {
        for (const RankPlan& plan : plans_) moves_.push_back(node && one_move(plan) != nullptr ? 1 : 0);
        RESHARD_CHECK(all_succeeded(communicator_.get(), {}, plans_.size()));
        if (moves_.empty()) return {};
        RESHARD_ASSIGN(moves_, least(communicator_.get(), std::move(moves_)));
        return {};
    }

    Communicator communicator_;  // of this list alone: executors side by side cannot take each other's messages
    Standing standing_;
    std::vector<RankPlan> plans_;
    std::vector<char> moves_;  // per array: through shared memory
    std::unique_ptr<ShmCopyPlan> node_;
    Messages messages_;
    std::vector<Signals*> signals_;
    bool excused_ = false;
};

// Inside the node and by messages at once; either may be absent. The first failure is told to the peers.
class BothRuns final : public Ticket {
public:
    BothRuns(std::unique_ptr<ShmCopy> node, std::unique_ptr<Ticket> messages, MpiPrepared& prepared,
             double& node_seconds)
        : node_(std::move(node)), messages_(std::move(messages)), prepared_(prepared), node_seconds_(node_seconds) {}
    ~BothRuns() override {
        while (node_) advance_node(long_slice);
    }

    Result<bool> test() override { return advance(only_poll); }
    Result<bool> wait_for(Index microseconds) override { return advance(Slice(microseconds)); }
    [[nodiscard]] bool has_sent() const override { return !messages_ || messages_->has_sent(); }

private:
    Result<bool> advance(Slice most) {
        advance_node(most);
        if (messages_ && !error_) {
            const auto done = messages_->wait_for((node_ ? only_poll : most).count());
            if (!done) error_ = done.error();
            if (done && *done) messages_.reset();
        }
        if (!error_) {
            const bool done = !node_ && !messages_;
            if (done && !std::exchange(reported_, true)) prepared_.finish_run();
            return done;
        }
        if (!std::exchange(reported_, true)) {
            prepared_.standing_.fail();
            messages_.reset();
            prepared_.abandon(*error_);
        }
        return tl::unexpected(*error_);
    }
    void advance_node(Slice most) {
        if (!node_) return;
        const auto done = node_->advance(most);
        if (!done && !error_) error_ = done.error();
        if (done && !*done) return;
        node_.reset();
        node_seconds_ = seconds_since(begun_at_);
    }

    std::unique_ptr<ShmCopy> node_;
    std::unique_ptr<Ticket> messages_;
    MpiPrepared& prepared_;
    double& node_seconds_;
    std::optional<Error> error_;
    bool reported_ = false;
    std::chrono::steady_clock::time_point begun_at_ = std::chrono::steady_clock::now();
};

class MpiBound final : public Bound {
public:
    explicit MpiBound(MpiPrepared& prepared) : prepared_(prepared) {}
    Result<void> bind(std::span<const Buffers> buffers) {
        const std::vector<RankPlan>& plans = prepared_.plans_;
        if (prepared_.node_) {
            const ShmCopyPlan& node = *prepared_.node_;
            RESHARD_ASSIGN(node_buffers_, ShmAddresses::bind(node.arena(), node.reached(), buffers,
                                                             bytes_of_plans(plans, &RankPlan::source_bytes),
                                                             bytes_of_plans(plans, &RankPlan::target_bytes)));
        }
        if (prepared_.messages_.empty()) return {};
        RESHARD_ASSIGN(messages_, prepared_.messages_.bind(buffers));
        return {};
    }
    Result<std::unique_ptr<Ticket>> start() override { return begin(nullptr); }
    Result<std::unique_ptr<Ticket>> start_if(const Agreed& agreed) override { return begin(&agreed); }
    [[nodiscard]] std::vector<double> step_seconds() const override;

private:
    // In a node a rank announces its run before it agrees, so the agreement is the first meeting of the run too.
    // Messages may write a target, so they begin after it.
    Result<std::unique_ptr<Ticket>> begin(const Agreed* agreed) {
        if (prepared_.node_) {
            RESHARD_CHECK(node_buffers_.renew(prepared_.node_->arena()));
        }
        if (messages_) {
            RESHARD_CHECK(messages_->renew());
            if (agreed != nullptr) RESHARD_CHECK((*agreed)());
        }
        prepared_.begin_run();
        if (messages_) {
            if (auto trouble = prepared_.standing_.trouble()) {
                const Error error{Code::backend, std::move(*trouble)};
                prepared_.abandon(error);
                return tl::unexpected(error);
            }
        }
        std::unique_ptr<ShmCopy> node;
        if (prepared_.node_) node = std::make_unique<ShmCopy>(*prepared_.node_, node_buffers_);
        if (agreed != nullptr && !messages_) {
            if (node) RESHARD_CHECK(node->pack_first());
            RESHARD_CHECK((*agreed)());
        }
        std::unique_ptr<Ticket> run;
        if (messages_) {
            RESHARD_ASSIGN(run, messages_->start());
        }
        return std::make_unique<BothRuns>(std::move(node), std::move(run), prepared_, node_seconds_);
    }

    MpiPrepared& prepared_;
    ShmAddresses node_buffers_;
    std::unique_ptr<MessageBound> messages_;
    double node_seconds_ = 0;
};

// Arrays that moved in one pass share its time by their bytes.
std::vector<double> MpiBound::step_seconds() const {
    const std::vector<double> of_messages = messages_ ? messages_->step_seconds() : std::vector<double>();
    const std::vector<RankPlan>& plans = prepared_.plans_;
    double bytes = 0;
    for (std::size_t i = 0; i < plans.size(); ++i) {
        if (prepared_.moves_[i] != 0) bytes += static_cast<double>(plans[i].source_bytes + plans[i].target_bytes);
    }
    std::vector<double> all;
    std::size_t next = 0;
    for (std::size_t i = 0; i < plans.size(); ++i) {
        const auto own = static_cast<double>(plans[i].source_bytes + plans[i].target_bytes);
        if (prepared_.moves_[i] != 0) {
            all.push_back(bytes > 0 ? node_seconds_ * own / bytes : node_seconds_);
            continue;
        }
        for (std::size_t step = 0; step < plans[i].steps.size(); ++step) all.push_back(of_messages[next++]);
    }
    return all;
}

Result<std::unique_ptr<Bound>> MpiPrepared::bind(std::span<const Buffers> buffers) {
    auto bound = std::make_unique<MpiBound>(*this);
    RESHARD_CHECK(bound->bind(buffers));
    return bound;
}

std::string MpiPrepared::describe() const {
    if (!node_) return messages_.describe();
    return messages_.empty() ? node_->describe() : node_->describe() + ", and " + messages_.describe();
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
        if (nodes_.is_all()) return meet_in_node();
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
        auto prepared = std::make_unique<MpiPrepared>(roll(), std::move(own));
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
        auto board = NodeBoard::make(nodes_.own.get(), options_.timeout);
        RESHARD_TRY(const auto& all, least(communicator(), {static_cast<char>(board ? 1 : 0)}));
        if (all.front() != 0) meet_at(std::move(*board));
        return {};
    }

    Options options_;
    NodeMap nodes_;
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
    for (const UnregisteredBuffers way : {UnregisteredBuffers::bounce, UnregisteredBuffers::bounce_nontemporal}) {
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

}  // namespace reshard::mpi
