#include "backends/mpi/run.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>

namespace reshard::mpi {
namespace {

constexpr int tag_max = 32767;                     // what every MPI grants
constexpr Index reduced_at_once = Index{1} << 28;  // elements of one MPI_Iallreduce, whose count is an int
constexpr int collective = -1;
constexpr std::string_view receiving = "receiving from";

bool is_staged(const Landing& landing) { return landing.message && landing.message->where == Where::staging; }

}  // namespace

Run::Run(RunPlan plan) : plan_(std::move(plan)) { advance(false); }

Run::~Run() {
    if (usable()) static_cast<void>(wait());
}

// Tests instead of MPI_Wait, which knows no end: looks a while, then gives up the processor between looks.
Result<void> Run::wait() {
    constexpr int looks = 100;
    auto since = std::chrono::steady_clock::now();
    int ordinal = ordinal_;
    for (int look = 0;; ++look) {
        const auto done = advance(false);
        if (!done) return tl::unexpected(done.error());
        if (*done) return {};
        if (look < looks) continue;
        sched_yield();
        const auto now = std::chrono::steady_clock::now();
        if (ordinal != ordinal_) since = now;
        ordinal = ordinal_;
        if (now - since >= plan_.patience) give_up();
    }
}

// What was posted cannot be taken back from peers that do not answer: receives are cancelled, the rest is left to MPI.
void Run::give_up() {
    const auto waited = fmt::format("waited {} ms in vain", plan_.patience.count());
    for (std::size_t i = landed_; i < landing_requests_.size(); ++i) {
        if (landing_requests_[i] == MPI_REQUEST_NULL) continue;
        note({receiving, step().landings[i].message->peer, -1}, waited);
        MPI_Cancel(&landing_requests_[i]);
        MPI_Request_free(&landing_requests_[i]);
    }
    for (std::size_t i = 0; i < requests_.size(); ++i) {
        int came = 0;
        MPI_Test(&requests_[i], &came, MPI_STATUS_IGNORE);
        if (came != 0) continue;
        note(pending_[i], waited);
        if (pending_[i].doing != receiving) continue;
        MPI_Cancel(&requests_[i]);
        MPI_Request_free(&requests_[i]);
    }
    note({"waiting for messages", collective, -1}, waited);
    forget_requests();
    array_ = plan_.arrays.size();
}

const WireStep& Run::step() const { return (*plan_.arrays[array_].steps)[step_]; }

Result<bool> Run::advance(bool block) {
    while (array_ < plan_.arrays.size()) {
        if (step_ == plan_.arrays[array_].steps->size()) {
            ++array_;
            step_ = 0;
            continue;
        }
        if (!begun_) begin_step();
        if (!finish_step(block)) return false;
        next_step();
    }
    if (error_) return tl::unexpected(*error_);
    return true;
}

void Run::begin_step() {
    begun_ = true;
    begun_at_ = std::chrono::steady_clock::now();
    for (const auto& [where, fill] : step().fills) fill.run(write(where));
    copy(step().packs);
    post_messages();
    if (step().gather) post_gather();
    if (step().reduction) post_reduction();
    copy(step().copies);
}

bool Run::finish_step(bool block) {
    if (!land(block) || !complete(block)) return false;
    copy(step().unpacks);
    for (const auto& [where, scale] : step().scales) scale.run(write(where));
    return true;
}

void Run::next_step() {
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begun_at_;
    (*plan_.step_seconds)[static_cast<std::size_t>(ordinal_)] = taken.count();
    begun_ = false;
    posted_ = 0;
    landed_ = 0;
    landing_requests_.clear();
    ++step_;
    ++ordinal_;
}

// Receives come before sends, so that a message finds its place and MPI need not keep it.
void Run::post_messages() {
    for (const Message& message : step().receives) {
        MPI_Request request = MPI_REQUEST_NULL;
        const Pending pending{receiving, message.peer, message.bytes};
        note_code(pending, MPI_Irecv(write(message.where) + message.offset_bytes, 1, message.type.get(), message.peer,
                                     ordinal_ % tag_max, plan_.communicator, &request));
        add_request(request, pending);
    }
    landing_requests_.assign(step().landings.size(), MPI_REQUEST_NULL);
    post_landings();
    for (const Message& message : step().sends) {
        MPI_Request request = MPI_REQUEST_NULL;
        const Pending pending{"sending to", message.peer, -1};
        note_code(pending, MPI_Isend(read(message.where) + message.offset_bytes, error_ ? 0 : 1, message.type.get(),
                                     message.peer, ordinal_ % tag_max, plan_.communicator, &request));
        add_request(request, pending);
    }
}

// In the order of the schedule, as far as there is a staging slot free: the messages of one peer must be received in
// the order in which it sends them.
void Run::post_landings() {
    const std::vector<Landing>& landings = step().landings;
    for (; posted_ < landings.size(); ++posted_) {
        const Landing& landing = landings[posted_];
        if (!landing.message) continue;
        if (is_staged(landing) && slots_taken_ == staging_slots) return;
        if (is_staged(landing)) ++slots_taken_;
        const Message& message = *landing.message;
        note_code({receiving, message.peer, message.bytes},
                  MPI_Irecv(write(message.where) + message.offset_bytes, 1, message.type.get(), message.peer,
                            ordinal_ % tag_max, plan_.communicator, &landing_requests_[posted_]));
    }
}

void Run::post_gather() {
    const Gather& gather = *step().gather;
    MPI_Request request = MPI_REQUEST_NULL;
    const Pending pending{"gathering", collective, -1};
    note_code(pending, MPI_Iallgather(read(gather.send.where) + gather.send.offset_bytes, 1, gather.send.type.get(),
                                      write(gather.receive.where) + gather.receive.offset_bytes, 1,
                                      gather.receive.type.get(), gather.communicator, &request));
    add_request(request, pending);
}

void Run::post_reduction() {
    const Reduction& reduction = *step().reduction;
    const std::byte* from = read(reduction.from) + reduction.from_offset;
    std::byte* to = write(reduction.to) + reduction.to_offset;
    const Index element_bytes = size_of(reduction.dtype);
    for (Index done = 0; done < reduction.elements; done += reduced_at_once) {
        const auto now = static_cast<int>(std::min(reduced_at_once, reduction.elements - done));
        MPI_Request request = MPI_REQUEST_NULL;
        const Pending pending{"reducing", collective, -1};
        note_code(pending, MPI_Iallreduce(from + done * element_bytes, to + done * element_bytes, now,
                                          reduction.type.get(), reduction.sum.get(), reduction.communicator, &request));
        add_request(request, pending);
    }
}

// Takes the receives of a sum in the order of the schedule, which is the order of the summands.
bool Run::land(bool block) {
    const std::vector<Landing>& landings = step().landings;
    for (; landed_ < landings.size(); ++landed_) {
        const Landing& landing = landings[landed_];
        if (landing.message && !arrived(*landing.message, landing_requests_[landed_], block)) return false;
        copy(landing.stores);
        for (const LocalCombine& add : landing.adds) add.combine.run(read(add.from), write(add.to));
        if (!is_staged(landing)) continue;
        --slots_taken_;
        post_landings();
    }
    return true;
}

bool Run::arrived(const Message& message, MPI_Request& request, bool block) {
    if (request == MPI_REQUEST_NULL) return true;  // it could not be posted, which was noted
    const Pending pending{receiving, message.peer, message.bytes};
    MPI_Status status{};
    int done = 1;
    const int code = block ? MPI_Wait(&request, &status) : MPI_Test(&request, &done, &status);
    if (code == MPI_SUCCESS && done == 0) return false;
    request = MPI_REQUEST_NULL;
    note_code(pending, code);
    if (code == MPI_SUCCESS) check_count(pending, status);
    return true;
}

// True when no request of the step is open. Requests that failed are closed and noted.
bool Run::complete(bool block) {
    while (!requests_.empty()) {
        std::vector<MPI_Status> statuses(requests_.size());
        const auto open = static_cast<int>(requests_.size());
        int done = 1;
        const int code = block ? MPI_Waitall(open, requests_.data(), statuses.data())
                               : MPI_Testall(open, requests_.data(), &done, statuses.data());
        if (code == MPI_SUCCESS && done == 0) return false;
        if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) {
            note({"waiting for messages", collective, -1}, text_of(code));
            forget_requests();
            return true;
        }
        sort_out(code, statuses);
    }
    return true;
}

// Keeps the requests that are still open. MPI sets the error of a status only when one of them failed.
void Run::sort_out(int code, const std::vector<MPI_Status>& statuses) {
    std::vector<MPI_Request> open;
    std::vector<Pending> open_pending;
    for (std::size_t i = 0; i < statuses.size(); ++i) {
        const int error = code == MPI_SUCCESS ? MPI_SUCCESS : statuses[i].MPI_ERROR;
        if (error == MPI_ERR_PENDING) {
            open.push_back(requests_[i]);
            open_pending.push_back(pending_[i]);
        } else if (error != MPI_SUCCESS) {
            note(pending_[i], text_of(error));
        } else {
            check_count(pending_[i], statuses[i]);
        }
    }
    requests_ = std::move(open);
    pending_ = std::move(open_pending);
}

void Run::forget_requests() {
    requests_.clear();
    pending_.clear();
}

void Run::add_request(MPI_Request request, Pending pending) {
    if (request == MPI_REQUEST_NULL) return;
    requests_.push_back(request);
    pending_.push_back(pending);
}

void Run::copy(const std::vector<LocalCopy>& copies) const {
    for (const LocalCopy& local : copies) local.copy.run(read(local.from), write(local.to));
}

// A message that is too long is MPI's error; one that is too short is not, and means that the peer has failed.
void Run::check_count(const Pending& pending, const MPI_Status& status) {
    if (pending.bytes < 0) return;
    MPI_Count got = 0;
    MPI_Get_elements_x(&status, MPI_BYTE, &got);
    if (got != pending.bytes) note(pending, fmt::format("got {} of {} bytes", got, pending.bytes));
}

void Run::note_code(const Pending& pending, int code) {
    if (code != MPI_SUCCESS) note(pending, text_of(code));
}

void Run::note(const Pending& pending, std::string_view what) {
    if (error_) return;
    const std::string peer = pending.peer == collective ? std::string() : fmt::format(" rank {}", pending.peer);
    error_ = Error{Code::backend, fmt::format("{}: {}{}: {}", step().name, pending.doing, peer, what)};
}

const std::byte* Run::read(Where where) const {
    return where == Where::source ? plan_.arrays[array_].buffers.source.data() : write(where);
}

std::byte* Run::write(Where where) const {
    const Buffers& buffers = plan_.arrays[array_].buffers;
    if (where == Where::staging) return plan_.staging;
    return where == Where::target ? buffers.target.data() : buffers.workspace.data();
}

}  // namespace reshard::mpi
