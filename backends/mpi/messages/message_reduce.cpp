#include "backends/mpi/messages/message_reduce.hpp"

namespace reshard::mpi {
namespace {

bool is_staged(const Message& message) { return message.where == BufferId::staging; }
bool is_staged(const Landing& landing) { return landing.message && is_staged(*landing.message); }

Pending receiving(const Message& message) {
    return {Pending::receiving, message.peer, message.bytes, 0, !is_staged(message)};
}

}  // namespace

void MessageReduce::begin() {
    const MessageStep& step = state_.stage().steps.front();
    landing_requests_.assign(step.landings.size(), MPI_REQUEST_NULL);
    posted_ = 0;
    landed_ = 0;
    sends_.restart(step.sends.size() * sends_per_peer);
    sends_next_.assign(step.sends.size(), 0);
    post_landings();
    for (std::size_t to = 0; to < step.sends.size(); ++to) post_sends(to);
}

void MessageReduce::post_sends(std::size_t to) {
    const MessageStep& step = state_.stage().steps.front();
    const std::vector<Message>& messages = step.sends[to].messages;
    for (std::size_t at = 0; at < sends_per_peer; ++at) {
        const std::size_t place = to * sends_per_peer + at;
        while (sends_.is_free(place)) {  // still free if MPI refused the message
            if (sends_next_[to] == messages.size()) return;
            const Message& message = messages[sends_next_[to]++];
            sends_.post(place, {Pending::sending, message.peer, -1, 0, !is_staged(message)}, [&](MPI_Request* request) {
                return begin_send(state_.read(step.array, message.where) + message.offset_bytes, state_.error() ? 0 : 1,
                                  message.type.get(), message.bytes, message.peer, state_.tag(),
                                  state_.plan().communicator, request);
            });
        }
    }
}

// Posts landings in order while staging slots are free: messages of a peer must be received in the order of its sends.
void MessageReduce::post_landings() {
    const MessageStep& step = state_.stage().steps.front();
    for (; posted_ < landing_requests_.size(); ++posted_) {
        const Landing& landing = step.landings[posted_];
        if (!landing.message) continue;
        if (is_staged(landing) && slots_taken_ == step.slots) return;
        if (is_staged(landing)) ++slots_taken_;
        const Message& message = *landing.message;
        state_.note_code(receiving(message), MPI_Irecv(state_.write(step.array, message.where) + message.offset_bytes,
                                                       1, message.type.get(), message.peer, state_.tag(),
                                                       state_.plan().communicator, &landing_requests_[posted_]));
    }
}

bool MessageReduce::advance() {
    const bool all_landed = land();
    while (!sends_.all_ended()) {
        const std::vector<Requests::Ended>& ended = sends_.test();
        if (ended.empty()) return false;
        for (const auto [place, well] : ended) post_sends(place / sends_per_peer);
    }
    return all_landed;
}

// Takes the receives of a sum in the order of the schedule, which is the order of the summands.
bool MessageReduce::land() {
    for (; landed_ < landing_requests_.size(); ++landed_) {
        const MessageStep& step = state_.stage().steps.front();
        const Landing& landing = step.landings[landed_];
        if (landing.message && !landed(*landing.message, landing_requests_[landed_])) return false;
        state_.happened();
        state_.copy(landing.stores);
        for (const LocalCombine& add : landing.adds) {
            add.combine.run(state_.read(step.array, add.from), state_.write(step.array, add.to));
        }
        if (!is_staged(landing)) continue;
        --slots_taken_;
        post_landings();
    }
    return true;
}

bool MessageReduce::landed(const Message& message, MPI_Request& request) {
    if (request == MPI_REQUEST_NULL) return true;  // it could not be posted, which was noted
    const Pending pending = receiving(message);
    MPI_Status status{};
    int done = 1;
    const int code = MPI_Test(&request, &done, &status);
    if (code == MPI_SUCCESS && done == 0) return false;
    request = MPI_REQUEST_NULL;
    if (state_.note_code(pending, code)) state_.counted(pending, status);
    return true;
}

bool MessageReduce::has_sent() const {
    const std::vector<Sends>& sends = state_.stage().steps.front().sends;
    for (std::size_t to = 0; to < sends.size(); ++to) {
        if (sends_next_[to] < sends[to].messages.size()) return false;
    }
    return true;
}

void MessageReduce::add_peers(std::set<int>& peers) const {
    for (std::size_t i = landed_; i < landing_requests_.size(); ++i) {
        if (landing_requests_[i] != MPI_REQUEST_NULL)
            peers.insert(state_.stage().steps.front().landings[i].message->peer);
    }
    sends_.add_peers(peers);
}

void MessageReduce::abandon(GivenUp& run) {
    for (std::size_t i = landed_; i < landing_requests_.size(); ++i) {
        const auto& message = state_.stage().steps.front().landings[i].message;
        if (message) run.add(state_, landing_requests_[i], receiving(*message), state_.plan().staging);
    }
    sends_.abandon(run, state_.plan().staging);
}

}  // namespace reshard::mpi
