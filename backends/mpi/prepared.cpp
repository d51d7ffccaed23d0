#include "backends/mpi/prepared.hpp"

#include <array>

#include "backends/mpi/base/agree.hpp"
#include "backends/mpi/shm/registry.hpp"
#include "src/base/try.hpp"
#include "src/execute/flights.hpp"

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

}  // namespace

MpiPrepared::~MpiPrepared() {
    for (Communicator& group : messages_.take_communicators()) standing_.own(std::move(group));
    standing_.own(std::move(communicator_));
}

Result<void> MpiPrepared::make(std::vector<RankPlan> plans, const std::shared_ptr<Arena>& arena, const NodeMap& nodes,
                               const Options& options, Index staging_bytes_max) {
    RESHARD_CHECK(make_ways(std::move(plans), arena, nodes, options, staging_bytes_max));
    std::set<int> peers;
    if (!messages_.empty()) {
        messages_.add_peers(peers);
        messages_.add_signals(signals_);
    }
    if (node_) signals_.push_back(&node_->signals());
    standing_.meet(std::move(peers));
    return {};
}

Result<void> MpiPrepared::make_ways(std::vector<RankPlan> plans, const std::shared_ptr<Arena>& arena,
                                    const NodeMap& nodes, const Options& options, Index staging_bytes_max) {
    plans_ = std::move(plans);
    source_bytes_ = bytes_of_plans(plans_, &RankPlan::source_bytes);
    target_bytes_ = bytes_of_plans(plans_, &RankPlan::target_bytes);
    RESHARD_CHECK(vote(nodes.is_all()));
    if (std::ranges::find(moves_, 1) != moves_.end()) {
        std::vector<ArrayStep> steps;
        for (std::size_t i = 0; i < plans_.size(); ++i) {
            steps.push_back({moves_[i] != 0 ? one_move(plans_[i]) : nullptr});
        }
        RESHARD_ASSIGN(node_, ShmCopyPlan::make(communicator_.get(), arena, steps, options));
        node_->count_in(repeated_);
    }
    if (node_ && plans_.size() == 1) {
        const Buffers none;
        RESHARD_ASSIGN(at_once_,
                       ShmAddresses::bind(*arena, node_->reached(), std::span(&none, 1), source_bytes_, target_bytes_));
    }
    std::vector<MessagePlan> rest;
    for (std::size_t i = 0; i < plans_.size(); ++i) {
        if (moves_[i] == 0) rest.push_back({i, &plans_[i]});
    }
    if (rest.empty()) return {};
    RESHARD_CHECK(make_parcels());
    const Index room = staging_bytes_max - (node_ ? node_->held_bytes() : 0);
    return messages_.make({communicator_.get(), &standing_, &nodes, arena, options, room}, rest, plans_.size());
}

// An array moves through shared memory where it does so on every rank.
Result<void> MpiPrepared::vote(bool node) {
    for (const RankPlan& plan : plans_) moves_.push_back(node && one_move(plan) != nullptr ? 1 : 0);
    RESHARD_CHECK(all_succeeded(communicator_.get(), {}, plans_.size()));
    if (moves_.empty()) return {};
    RESHARD_ASSIGN(moves_, least(communicator_.get(), std::move(moves_)));
    return {};
}

// A small array whose data travel with the agreement of the ranks.
Result<void> MpiPrepared::make_parcels() {
    if (!roll_.vote() || plans_.size() != 1) return {};
    const RankPlan& plan = plans_.front();
    const Index most = Post::data_bytes_max * size_of_communicator(communicator_.get());
    const bool small = one_move(plan) != nullptr && std::max(plan.source_bytes, plan.target_bytes) <= most;
    RESHARD_TRY(const auto& all, least(communicator_.get(), {static_cast<char>(small ? 1 : 0)}));
    if (all.front() == 0) return {};
    RESHARD_ASSIGN(parcels_, Parcels::make(communicator_.get(), *one_move(plan)));
    return {};
}

void MpiPrepared::abandon(const Error& why) {
    for (Signals* signals : signals_) signals->fail_all(why);
    standing_.abandon(why);
}

void MpiPrepared::report_failure(const Error& why) {
    excused_ = true;
    for (Signals* signals : signals_) signals->report_failure(why);
    standing_.report_failure(why);
}

void MpiPrepared::begin_run() {
    standing_.start();
    if (!std::exchange(excused_, false)) return;
    for (Signals* signals : signals_) signals->take_back_excuse();
}

Result<void> MpiPrepared::agree_with(Carrier* carrier, bool alone, const Agreed* agreed) {
    if (agreed == nullptr) {
        if (carrier != nullptr) carrier->send({});
        return {};
    }
    roll_.send_with(carrier, alone);
    auto agree = (*agreed)();
    roll_.send_with(nullptr, false);
    return agree;
}

bool MpiPrepared::moves_at_once(bool agrees) const {
    if (parcels_) return agrees;
    if (!Registry::of_process().empty()) return false;
    if (!messages_.empty()) return messages_.runs_inside() && !repeated_;
    return at_once_ && (!repeated_ || node_->is_small());
}

Result<void> MpiPrepared::move_by_letters(const Buffers& buffers, const Agreed& agreed) {
    parcels_->begin(buffers);
    roll_.enclose(&*parcels_);
    auto agree = agreed();
    roll_.enclose(nullptr);
    if (agree) parcels_->keep_own();
    return agree;
}

// Peers do not reach the buffers of a small move, so it needs no addresses.
Result<void> MpiPrepared::move_at_once(const Buffers& buffers, const Agreed* agreed) {
    if (parcels_) return move_by_letters(buffers, *agreed);
    if (messages_.runs_inside()) {
        RESHARD_CHECK(messages_.bind_inside(buffers));
        begin_run();
        RESHARD_CHECK(messages_.run_inside([&](Carrier* carrier) { return agree_with(carrier, true, agreed); }));
        finish_run();
        return {};
    }
    if (agreed == nullptr && node_->is_alone()) {
        begin_run();
        node_->copy_alone(buffers);
        finish_run();
        return {};
    }
    at_once_->sources.front() = buffers.source.data();
    at_once_->targets.front() = buffers.target.data();
    if (!node_->is_small()) RESHARD_CHECK(at_once_->rebind(node_->arena(), std::span(&buffers, 1)));
    begin_run();
    ShmCopy run(*node_, *at_once_);
    RESHARD_CHECK(agree_with(node_->is_small() ? &run : nullptr, true, agreed));
    RESHARD_CHECK(run.finish());
    finish_run();
    return {};
}

void MpiPrepared::finish_run() {
    for (Signals* signals : signals_) signals->finish_run();
    standing_.finish();
}

// Inside the node and by messages at once; either may be absent. The first failure is told to the peers.
class BothRuns final : public Ticket {
public:
    BothRuns(MpiPrepared& prepared, double& node_seconds) : prepared_(prepared), node_seconds_(node_seconds) {}

    Result<void> begin_node(const ShmAddresses& buffers, const Agreed* agreed) {
        ShmCopy& run = node_.emplace(*prepared_.node_, buffers);
        const bool alone = Flights::of_this_thread()->empty();
        return prepared_.agree_with(prepared_.node_->is_small() ? &run : nullptr, alone, agreed);
    }
    void begin_messages(std::unique_ptr<Ticket> messages) { messages_ = std::move(messages); }
    /// Leaves a run that the ranks have not agreed on, or that is over. Nobody waits for its end.
    void take_back() {
        node_.reset();
        reported_ = true;
    }

    ~BothRuns() override {
        while (node_) advance_node(long_slice);
    }

    Result<bool> test() override { return advance(only_poll); }
    Result<bool> wait_for(Index microseconds) override { return advance(Slice(microseconds)); }
    [[nodiscard]] bool has_sent() const override { return !messages_ || messages_->has_sent(); }
    [[nodiscard]] bool has_arrived() const override {
        return !error_ && !node_ && (!messages_ || messages_->has_arrived());
    }

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

    std::optional<ShmCopy> node_;
    std::unique_ptr<Ticket> messages_;
    MpiPrepared& prepared_;
    double& node_seconds_;
    std::optional<Error> error_;
    bool reported_ = false;
    std::chrono::steady_clock::time_point begun_at_ = std::chrono::steady_clock::now();
};

class MpiBound final : public Rebindable {
public:
    explicit MpiBound(MpiPrepared& prepared) : prepared_(prepared) {}
    Result<void> bind(std::span<const Buffers> buffers) {
        if (prepared_.node_) {
            const ShmCopyPlan& node = *prepared_.node_;
            RESHARD_ASSIGN(node_buffers_, ShmAddresses::bind(node.arena(), node.reached(), buffers,
                                                             prepared_.source_bytes_, prepared_.target_bytes_));
        }
        return bind_messages(buffers);
    }
    bool unbind() override {
        const bool messages_stay = !messages_ || messages_->unbind();
        if (!messages_stay) messages_.reset();
        return node_buffers_.unbind() && messages_stay;
    }
    Result<void> rebind(std::span<const Buffers> buffers) override {
        if (prepared_.node_) {
            RESHARD_CHECK(node_buffers_.rebind(prepared_.node_->arena(), buffers));
        }
        return bind_messages(buffers);
    }
    Result<std::unique_ptr<Ticket>> start() override { return begin(nullptr); }
    Result<std::unique_ptr<Ticket>> start_if(const Agreed& agreed) override { return begin(&agreed); }
    [[nodiscard]] std::vector<double> step_seconds() const override;

private:
    Result<void> bind_messages(std::span<const Buffers> buffers) {
        if (buffers.size() == 1) one_ = buffers.front();
        if (prepared_.messages_.empty()) return {};
        RESHARD_ASSIGN(messages_, prepared_.messages_.bind(buffers));
        return {};
    }

    // In a node a rank announces its run before it agrees, so the agreement is the first meeting of the run too.
    // Messages may write a target, so they begin after it.
    Result<std::unique_ptr<Ticket>> begin(const Agreed* agreed) {
        if (prepared_.parcels_ && agreed != nullptr) {
            RESHARD_CHECK(prepared_.move_by_letters(*one_, *agreed));
            auto over = std::make_unique<BothRuns>(prepared_, node_seconds_);
            over->take_back();
            return over;
        }
        if (prepared_.node_) {
            if (prepared_.repeated_) prepared_.repeated_->register_due(node_buffers_.buffers);
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
        auto run = std::make_unique<BothRuns>(prepared_, node_seconds_);
        Result<void> begun;
        const Agreed* const agrees = messages_ ? nullptr : agreed;
        if (prepared_.node_)
            begun = run->begin_node(node_buffers_, agrees);
        else if (agrees != nullptr)
            begun = (*agrees)();
        if (!begun) {
            run->take_back();
            return tl::unexpected(std::move(begun).error());
        }
        if (messages_) {
            RESHARD_TRY(auto& messages, messages_->start());
            run->begin_messages(std::move(messages));
        }
        return run;
    }

    MpiPrepared& prepared_;
    std::optional<Buffers> one_;  // of the only array
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

}  // namespace reshard::mpi
