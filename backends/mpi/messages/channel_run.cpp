#include "backends/mpi/messages/channel_run.hpp"

namespace reshard::mpi {

// Receives come before sends, so that a message finds its place and MPI need not keep it.
void ChannelRun::begin() {
    const std::vector<Channel>& channels = state_.stage().channels;
    flows_.assign(channels.size(), {});
    requests_.restart(flows_.size() * in_flight_max);
    for (const bool sends : {false, true}) {
        for (std::size_t i = 0; i < flows_.size(); ++i) {
            if (channels[i].sends == sends) post(i);
        }
    }
}

// Posts what may be: at most so many messages of a channel, in their order, each staged one when its slot is free.
void ChannelRun::post(std::size_t channel) {
    const std::vector<Packet>& pieces = state_.stage().channels[channel].pieces;
    Flow& flow = flows_[channel];
    for (std::size_t at = 0; at < in_flight_max; ++at) {
        while (requests_.is_free(channel * in_flight_max + at)) {  // also after one that MPI refused
            if (flow.next == pieces.size()) return;
            const Packet& piece = pieces[flow.next];
            if (!piece.copies.empty() && flow.taken[piece.slot]) return;
            if (!piece.copies.empty()) flow.taken[piece.slot] = true;
            flow.pieces[at] = flow.next++;
            post_piece(channel, at);
        }
    }
}

void ChannelRun::post_piece(std::size_t channel, std::size_t at) {
    const Channel& flowing = state_.stage().channels[channel];
    const Packet& piece = flowing.pieces[flows_[channel].pieces[at]];
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
        return MPI_Isend(state_.read(piece.array, piece.where) + piece.offset_bytes, well ? length : 0, type,
                         flowing.peer, state_.tag(), communicator, request);
    };
    const Pending pending{flowing.sends ? Pending::sending : Pending::receiving, flowing.peer,
                          flowing.sends ? -1 : piece.bytes, piece.step, piece.copies.empty()};
    if (!requests_.post(channel * in_flight_max + at, pending, start)) arrived(channel, at, false);
}

void ChannelRun::arrived(std::size_t channel, std::size_t at, bool well) {
    const Channel& flowing = state_.stage().channels[channel];
    const Packet& piece = flowing.pieces[flows_[channel].pieces[at]];
    if (piece.copies.empty()) return;
    if (well && !flowing.sends) state_.copy(piece.copies, state_.stage().store);
    flows_[channel].taken[piece.slot] = false;
}

bool ChannelRun::advance() {
    while (!requests_.all_ended()) {
        const std::vector<Requests::Ended>& ended = requests_.test();
        if (ended.empty()) break;
        for (const auto [place, well] : ended) arrived(place / in_flight_max, place % in_flight_max, well);
        for (std::size_t channel = 0; channel < flows_.size(); ++channel) post(channel);
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

void ChannelRun::give_up(GivenUp& run) {
    requests_.give_up(run, state_.plan().staging);
    flows_.clear();
}

}  // namespace reshard::mpi
