#include "backends/mpi/messages/channel_run.hpp"

#include <algorithm>

namespace reshard::mpi {

// Receives are posted before sends, so that a message finds its place and MPI need not buffer it.
void ChannelRun::begin() {
    const std::vector<Channel>& channels = state_.stage().channels;
    flows_.assign(channels.size(), {});
    places_.clear();
    sending_ = 0;
    receiving_ = 0;
    for (std::size_t i = 0; i < flows_.size(); ++i) {
        for (const Packet& piece : channels[i].pieces) flows_[i].left_bytes += piece.bytes;
        flows_[i].first = places_.size();
        flows_[i].places = std::min(channels[i].pieces.size(), sends_shared);
        places_.resize(places_.size() + flows_[i].places, {i, 0});
        channels[i].sends ? ++sending_ : receiving_ += channels[i].pieces.size();
    }
    requests_.restart(places_.size());
    for (const bool sends : {false, true}) {
        for (std::size_t i = 0; i < flows_.size(); ++i) {
            if (channels[i].sends == sends) turns_.add(i, flows_[i].left_bytes);
        }
        post();
    }
}

// Posts messages, one channel after another, until no channel may post.
void ChannelRun::post() {
    while (const auto channel = turns_.next()) {
        if (post_next(*channel)) turns_.add(*channel, flows_[*channel].left_bytes);
    }
}

// Posts the next message of a channel. False if it must wait: only so many messages are in flight, they go in order,
// and a staged one needs its slot to be free.
bool ChannelRun::post_next(std::size_t channel) {
    const Channel& flowing = state_.stage().channels[channel];
    const std::vector<Packet>& pieces = flowing.pieces;
    Flow& flow = flows_[channel];
    if (flow.next == pieces.size()) return false;
    const std::size_t end = flow.first + std::min(flow.places, under_way_max(flowing));
    std::size_t place = flow.first;
    while (place < end && !requests_.is_free(place)) ++place;
    const Packet& piece = pieces[flow.next];
    if (place == end || (!piece.copies.empty() && flow.taken[piece.slot])) return false;
    if (!piece.copies.empty()) flow.taken[piece.slot] = true;
    places_[place].piece = flow.next++;
    flow.left_bytes -= piece.bytes;
    if (flowing.sends && flow.next == pieces.size()) --sending_;
    post_piece(place);
    return true;
}

std::size_t ChannelRun::under_way_max(const Channel& channel) const {
    if (!channel.sends) return sends_shared;
    return std::max(sends_per_peer, sends_shared / sending_);
}

void ChannelRun::post_piece(std::size_t place) {
    const Channel& flowing = state_.stage().channels[places_[place].channel];
    const Packet& piece = flowing.pieces[places_[place].piece];
    const MPI_Datatype type = piece.type ? piece.type->get() : MPI_BYTE;
    const int length = piece.type ? 1 : static_cast<int>(piece.bytes);
    const MPI_Comm communicator = state_.plan().communicator;
    const auto start = [&](MPI_Request* request) {
        if (!flowing.sends) {
            return MPI_Irecv(state_.write(piece.array, piece.where) + piece.offset_bytes, length, type, flowing.peer,
                             state_.tag(), communicator, request);
        }
        const bool well = !state_.error();
        if (well) state_.copy(piece.copies);
        return begin_send(state_.read(piece.array, piece.where) + piece.offset_bytes, well ? length : 0, type,
                          well ? piece.bytes : 0, flowing.peer, state_.tag(), communicator, request);
    };
    const Pending pending{flowing.sends ? Pending::sending : Pending::receiving, flowing.peer,
                          flowing.sends ? -1 : piece.bytes, piece.step, piece.copies.empty()};
    if (!requests_.post(place, pending, start)) arrived(places_[place], false);
}

void ChannelRun::arrived(const Place& place, bool well) {
    const Channel& flowing = state_.stage().channels[place.channel];
    const Packet& piece = flowing.pieces[place.piece];
    if (!flowing.sends) --receiving_;
    if (piece.copies.empty()) return;
    if (well && !flowing.sends) state_.copy(piece.copies, state_.stage().store);
    flows_[place.channel].taken[piece.slot] = false;
}

bool ChannelRun::advance() {
    while (!requests_.all_ended()) {
        const std::vector<Requests::Ended>& ended = requests_.test();
        if (ended.empty()) break;
        for (const auto [place, well] : ended) {
            const std::size_t channel = places_[place].channel;
            arrived(places_[place], well);
            turns_.add(channel, flows_[channel].left_bytes);
        }
        post();
    }
    return requests_.all_ended();
}

bool ChannelRun::has_sent() const {
    for (std::size_t i = 0; i < flows_.size(); ++i) {
        const Channel& channel = state_.stage().channels[i];
        if (channel.sends && flows_[i].next < channel.pieces.size()) return false;
    }
    return true;
}

void ChannelRun::abandon(GivenUp& run) {
    requests_.abandon(run, state_.plan().staging);
    flows_.clear();
}

}  // namespace reshard::mpi
