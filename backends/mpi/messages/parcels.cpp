#include "backends/mpi/messages/parcels.hpp"

#include <algorithm>

#include "backends/mpi/base/agree.hpp"
#include "src/base/try.hpp"

namespace reshard::mpi {

Result<std::optional<Parcels>> Parcels::make(MPI_Comm communicator, const RankStep& step) {
    const ArrayStep array{&step};
    RESHARD_TRY(const auto& parts, all_succeeded(communicator, exchange_parts(communicator, std::span(&array, 1)), 1));
    Parcels made;
    Index bytes = 0;
    for (Index rank = 0; rank < size_of_communicator(communicator); ++rank) {
        const auto peer = static_cast<std::size_t>(rank);
        made.outgoing_.emplace_back(parts.sends, peer, BouncePieces::Side::sender);
        made.incoming_.emplace_back(parts.receives, peer, BouncePieces::Side::receiver);
        bytes = std::max(bytes, made.outgoing_.back().bytes());
    }
    RESHARD_TRY(const auto& fit, least(communicator, {static_cast<char>(bytes <= Post::data_bytes_max ? 1 : 0)}));
    if (fit.front() == 0) return std::nullopt;
    for (const PeerRegion& part : parts.own) made.staying_.push_back(copy_of_part(part, BouncePieces::Side::both));
    made.packed_.resize(static_cast<std::size_t>(bytes));
    return made;
}

void Parcels::begin(const Buffers& buffers) {
    source_.front() = buffers.source.data();
    target_.front() = buffers.target.data();
}

std::span<const std::byte> Parcels::to(int rank) {
    const PackedParts& parts = outgoing_[static_cast<std::size_t>(rank)];
    parts.pack(source_, packed_.data());
    return std::span(packed_).first(static_cast<std::size_t>(parts.bytes()));
}

void Parcels::take(int rank, std::span<const std::byte> data) {
    incoming_[static_cast<std::size_t>(rank)].unpack(data.data(), target_);
}

void Parcels::keep_own() {
    for (const BoxCopy& copy : staying_) copy.run(source_.front(), target_.front());
}

}  // namespace reshard::mpi
