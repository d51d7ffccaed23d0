#include "backends/mpi/run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>

#include <algorithm>
#include <thread>

namespace reshard::mpi {
namespace {

constexpr int tag_max = 32767;                     // what every MPI grants
constexpr Index reduced_at_once = Index{1} << 28;  // elements of one MPI_Iallreduce, whose count is an int
constexpr int collective = -1;
constexpr std::string_view receiving = "receiving from";
constexpr std::string_view sending = "sending to";

bool is_staged(const Landing& landing) { return landing.message && landing.message->where == Where::staging; }

}  // namespace

Run::Run(RunPlan plan) : plan_(std::move(plan)) { advance(false); }

Run::~Run() {
    if (usable()) static_cast<void>(wait());
}

// Tests instead of MPI_Wait, which knows no end: looks a while, then gives up the processor between looks, and sleeps
// for a part of the time in which nothing has happened: what a link brings meanwhile, the system keeps.
Result<void> Run::wait() {
    using std::chrono::steady_clock;
    constexpr int looks = 100;
    constexpr int looks_between_naps = 2;
    constexpr auto idle = std::chrono::microseconds(200);
    constexpr auto longest_nap = std::chrono::microseconds(200);
    auto since = steady_clock::now();
    Index events = events_;
    for (int look = 0;; ++look) {
        const auto done = advance(look >= looks);
        if (!done) return tl::unexpected(done.error());
        if (*done) return {};
        if (look < looks) continue;
        const auto now = steady_clock::now();
        if (events != events_) since = now;
        events = events_;
        if (now - since >= plan_.patience) give_up();
        if (now - since < idle) {
            sched_yield();
        } else if (look % looks_between_naps == 0) {
            std::this_thread::sleep_for(std::min<steady_clock::duration>((now - since) / 10, longest_nap));
        }
    }
}

// What was posted cannot be taken back from peers that do not answer: receives are cancelled, the rest is left to MPI.
void Run::give_up() {
    const auto waited = fmt::format("waited {} ms in vain", plan_.patience.count());
    for (std::size_t i = landed_; i < landing_requests_.size(); ++i) {
        if (landing_requests_[i] == MPI_REQUEST_NULL) continue;
        note({receiving, wave().steps.front().landings[i].message->peer, -1, 0}, waited);
        MPI_Cancel(&landing_requests_[i]);
        MPI_Request_free(&landing_requests_[i]);
    }
    for (std::size_t i = 0; i < requests_.size(); ++i) {
        if (requests_[i] == MPI_REQUEST_NULL) continue;
        int came = 0;
        MPI_Test(&requests_[i], &came, MPI_STATUS_IGNORE);
        if (came != 0) continue;
        note(pending_[i], waited);
        if (pending_[i].doing != receiving) continue;
        MPI_Cancel(&requests_[i]);
        MPI_Request_free(&requests_[i]);
    }
    note({"waiting for messages", collective, -1, 0}, waited);
    forget_requests();
    wave_ = plan_.waves->size();
}

Result<bool> Run::advance(bool block) {
    while (wave_ < plan_.waves->size()) {
        if (!begun_) begin_wave();
        if (!finish_wave(block)) return false;
        end_wave();
    }
    if (error_) return tl::unexpected(*error_);
    return true;
}

void Run::begin_wave() {
    begun_ = true;
    begun_at_ = std::chrono::steady_clock::now();
    flows_.assign(wave().streams.size(), {});
    requests_.assign(flows_.size() * in_flight_max, MPI_REQUEST_NULL);
    pending_.assign(requests_.size(), Pending{});
    for (const WireStep& step : wave().steps) {
        for (const auto& [where, fill] : step.fills) fill.run(write(step.array, where));
        copy(step.packs);
    }
    begin_node();
    // Receives come before sends, so that a message finds its place and MPI need not keep it.
    for (const bool sends : {false, true}) {
        for (std::size_t i = 0; i < flows_.size(); ++i) {
            if (wave().streams[i].sends == sends) post(i);
        }
    }
    for (std::size_t i = 0; i < wave().steps.size(); ++i) {
        post_sum(i);
        if (wave().steps[i].gather) post_gather(i);
        if (wave().steps[i].reduction) post_reduction(i);
        copy(wave().steps[i].copies);
    }
}

bool Run::finish_wave(bool block) {
    const bool all_landed = land();
    const bool all_complete = complete();
    // Only a rank that no message waits for may sleep on the board: asleep it makes none of them go on.
    const bool node_over = advance_node(block && all_landed && all_complete);
    if (!all_landed || !all_complete || !node_over) return false;
    for (const WireStep& step : wave().steps) {
        copy(step.unpacks);
        for (const auto& [where, scale] : step.scales) scale.run(write(step.array, where));
    }
    return true;
}

// The steps of a wave share its time by their bytes.
void Run::end_wave() {
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begun_at_;
    double bytes = 0;
    for (const Wave::Timed& one : wave().timed) bytes += one.bytes;
    for (const Wave::Timed& one : wave().timed) {
        (*plan_.step_seconds)[one.ordinal] = bytes > 0 ? taken.count() * one.bytes / bytes : taken.count();
    }
    begun_ = false;
    posted_ = 0;
    landed_ = 0;
    landing_requests_.clear();
    ++events_;
    ++wave_;
}

void Run::begin_node() {
    if (wave().node && !error_) node_.emplace(*wave().node, (*plan_.node_buffers)[wave_]);
}

bool Run::advance_node(bool block) {
    if (!node_) return true;
    const auto done = node_->advance(block);
    if (done && !*done) return false;
    node_.reset();
    ++events_;
    if (done || error_) return true;
    fail(fmt::format("{}: among ranks {}, counted from 0: {}", wave().steps.front().name,
                     fmt::join(plan_.nodes->members, ", "), done.error().message));
    return true;
}

// Posts what may be: at most so many messages of a stream, in their order, each staged one when its slot is free.
void Run::post(std::size_t stream) {
    const std::vector<Piece>& pieces = wave().streams[stream].pieces;
    Flow& flow = flows_[stream];
    for (std::size_t at = 0; at < in_flight_max; ++at) {
        while (requests_[stream * in_flight_max + at] == MPI_REQUEST_NULL) {  // also after one that MPI refused
            if (flow.next == pieces.size()) return;
            const Piece& piece = pieces[flow.next];
            if (!piece.copies.empty() && flow.taken[piece.slot]) return;
            if (!piece.copies.empty()) flow.taken[piece.slot] = true;
            flow.pieces[at] = flow.next++;
            post_piece(stream, at);
        }
    }
}

void Run::post_piece(std::size_t stream, std::size_t at) {
    const Stream& flowing = wave().streams[stream];
    const Piece& piece = flowing.pieces[flows_[stream].pieces[at]];
    const std::size_t place = stream * in_flight_max + at;
    const Index bytes = flowing.sends ? -1 : piece.bytes;
    pending_[place] = {flowing.sends ? sending : receiving, flowing.peer, bytes, piece.step};
    const MPI_Datatype type = piece.type ? piece.type->get() : MPI_BYTE;
    const int length = piece.type ? 1 : static_cast<int>(piece.bytes);
    const int tag = static_cast<int>(wave_ % tag_max);
    int code = MPI_SUCCESS;
    if (flowing.sends) {
        if (!error_) copy(piece.copies);
        code = MPI_Isend(read(piece.array, piece.where) + piece.offset_bytes, error_ ? 0 : length, type, flowing.peer,
                         tag, plan_.communicator, &requests_[place]);
    } else {
        code = MPI_Irecv(write(piece.array, piece.where) + piece.offset_bytes, length, type, flowing.peer, tag,
                         plan_.communicator, &requests_[place]);
    }
    if (note_code(pending_[place], code)) {
        ++open_;
    } else {
        requests_[place] = MPI_REQUEST_NULL;
        arrived(stream, at, false);
    }
}

void Run::arrived(std::size_t stream, std::size_t at, bool well) {
    const Stream& flowing = wave().streams[stream];
    const Piece& piece = flowing.pieces[flows_[stream].pieces[at]];
    if (piece.copies.empty()) return;
    if (well && !flowing.sends) copy(piece.copies, wave().store);
    flows_[stream].taken[piece.slot] = false;
}

void Run::post_sum(std::size_t number) {
    const WireStep& step = wave().steps[number];
    landing_requests_.resize(landing_requests_.size() + step.landings.size(), MPI_REQUEST_NULL);
    post_landings();
    for (const Message& message : step.sends) {
        MPI_Request request = MPI_REQUEST_NULL;
        const Pending pending{sending, message.peer, -1, number};
        note_code(pending,
                  MPI_Isend(read(step.array, message.where) + message.offset_bytes, error_ ? 0 : 1, message.type.get(),
                            message.peer, static_cast<int>(wave_ % tag_max), plan_.communicator, &request));
        add_request(request, pending);
    }
}

// In the order of the schedule, as far as there is a staging slot free: the messages of one peer must be received in
// the order in which it sends them. A step that adds up has its wave to itself.
void Run::post_landings() {
    const WireStep& step = wave().steps.front();
    for (; posted_ < landing_requests_.size(); ++posted_) {
        const Landing& landing = step.landings[posted_];
        if (!landing.message) continue;
        if (is_staged(landing) && slots_taken_ == staging_slots) return;
        if (is_staged(landing)) ++slots_taken_;
        const Message& message = *landing.message;
        note_code(
            {receiving, message.peer, message.bytes, 0},
            MPI_Irecv(write(step.array, message.where) + message.offset_bytes, 1, message.type.get(), message.peer,
                      static_cast<int>(wave_ % tag_max), plan_.communicator, &landing_requests_[posted_]));
    }
}

void Run::post_gather(std::size_t number) {
    const WireStep& step = wave().steps[number];
    const Gather& gather = *step.gather;
    MPI_Request request = MPI_REQUEST_NULL;
    const Pending pending{"gathering", collective, -1, number};
    note_code(pending,
              MPI_Iallgather(read(step.array, gather.send.where) + gather.send.offset_bytes, 1, gather.send.type.get(),
                             write(step.array, gather.receive.where) + gather.receive.offset_bytes, 1,
                             gather.receive.type.get(), gather.communicator, &request));
    add_request(request, pending);
}

void Run::post_reduction(std::size_t number) {
    const WireStep& step = wave().steps[number];
    const Reduction& reduction = *step.reduction;
    const std::byte* from = read(step.array, reduction.from) + reduction.from_offset;
    std::byte* to = write(step.array, reduction.to) + reduction.to_offset;
    const Index element_bytes = size_of(reduction.dtype);
    for (Index done = 0; done < reduction.elements; done += reduced_at_once) {
        const auto now = static_cast<int>(std::min(reduced_at_once, reduction.elements - done));
        MPI_Request request = MPI_REQUEST_NULL;
        const Pending pending{"reducing", collective, -1, number};
        note_code(pending, MPI_Iallreduce(from + done * element_bytes, to + done * element_bytes, now,
                                          reduction.type.get(), reduction.sum.get(), reduction.communicator, &request));
        add_request(request, pending);
    }
}

// Takes the receives of a sum in the order of the schedule, which is the order of the summands.
bool Run::land() {
    for (; landed_ < landing_requests_.size(); ++landed_) {
        const WireStep& step = wave().steps.front();
        const Landing& landing = step.landings[landed_];
        if (landing.message && !landed(*landing.message, landing_requests_[landed_])) return false;
        ++events_;
        copy(landing.stores);
        for (const LocalCombine& add : landing.adds) {
            add.combine.run(read(step.array, add.from), write(step.array, add.to));
        }
        if (!is_staged(landing)) continue;
        --slots_taken_;
        post_landings();
    }
    return true;
}

bool Run::landed(const Message& message, MPI_Request& request) {
    if (request == MPI_REQUEST_NULL) return true;  // it could not be posted, which was noted
    const Pending pending{receiving, message.peer, message.bytes, 0};
    MPI_Status status{};
    int done = 1;
    const int code = MPI_Test(&request, &done, &status);
    if (code == MPI_SUCCESS && done == 0) return false;
    request = MPI_REQUEST_NULL;
    if (note_code(pending, code)) counted(pending, status);
    return true;
}

// True when no request of the wave is open. Requests that failed are closed and noted; streams go on.
bool Run::complete() {
    while (open_ > 0) {
        completed_.resize(requests_.size());
        statuses_.resize(requests_.size());
        int count = 0;
        const int code = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, completed_.data(),
                                      statuses_.data());
        if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) {
            note({"waiting for messages", collective, -1, 0}, text_of(code));
            forget_requests();
            return true;
        }
        if (count == 0 || count == MPI_UNDEFINED) return count == MPI_UNDEFINED;
        events_ += count;
        for (int i = 0; i < count; ++i) {
            const auto request = static_cast<std::size_t>(completed_[static_cast<std::size_t>(i)]);
            const MPI_Status& status = statuses_[static_cast<std::size_t>(i)];
            // MPI sets the error of a status only when one of them failed.
            const bool well = close(request, code == MPI_SUCCESS ? MPI_SUCCESS : status.MPI_ERROR, status);
            if (request < flows_.size() * in_flight_max)
                arrived(request / in_flight_max, request % in_flight_max, well);
        }
        for (std::size_t stream = 0; stream < flows_.size(); ++stream) post(stream);
    }
    return true;
}

bool Run::close(std::size_t request, int error, const MPI_Status& status) {
    requests_[request] = MPI_REQUEST_NULL;
    --open_;
    return note_code(pending_[request], error) && counted(pending_[request], status);
}

void Run::forget_requests() {
    requests_.clear();
    pending_.clear();
    flows_.clear();
    open_ = 0;
}

void Run::add_request(MPI_Request request, Pending pending) {
    if (request == MPI_REQUEST_NULL) return;
    requests_.push_back(request);
    pending_.push_back(pending);
    ++open_;
}

void Run::copy(const std::vector<LocalCopy>& copies, Store store) const {
    for (const LocalCopy& local : copies) {
        local.copy.run(read(local.array, local.from), write(local.array, local.to), store);
    }
}

// A message that is too long is MPI's error; one that is too short is not, and means that the peer has failed.
bool Run::counted(const Pending& pending, const MPI_Status& status) {
    if (pending.bytes < 0) return true;
    MPI_Count got = 0;
    MPI_Get_elements_x(&status, MPI_BYTE, &got);
    if (got != pending.bytes) note(pending, fmt::format("got {} of {} bytes", got, pending.bytes));
    return got == pending.bytes;
}

bool Run::note_code(const Pending& pending, int code) {
    if (code != MPI_SUCCESS) note(pending, text_of(code));
    return code == MPI_SUCCESS;
}

void Run::note(const Pending& pending, std::string_view what) {
    const std::string peer = pending.peer == collective ? std::string() : fmt::format(" rank {}", pending.peer);
    fail(fmt::format("{}: {}{}: {}", wave().steps[pending.step].name, pending.doing, peer, what));
}

// The first to be known is told, also to the ranks of the node, who may be waiting in this wave or a later one.
void Run::fail(std::string message) {
    if (error_) return;
    error_ = Error{Code::backend, std::move(message)};
    for (std::size_t i = wave_; i < plan_.waves->size(); ++i) {
        if ((*plan_.waves)[i].node) (*plan_.waves)[i].node->fail_all(*error_);
    }
}

const std::byte* Run::read(std::size_t array, Where where) const {
    return where == Where::source ? plan_.buffers[array].source.data() : write(array, where);
}

std::byte* Run::write(std::size_t array, Where where) const {
    const Buffers& buffers = plan_.buffers[array];
    if (where == Where::staging) return plan_.staging;
    return where == Where::target ? buffers.target.data() : buffers.workspace.data();
}

}  // namespace reshard::mpi
