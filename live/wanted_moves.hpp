// The moves that make the tensors of a subscriber from the tensors of a publisher.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "live/tensors.hpp"
#include "reshard/live/subscribe.hpp"
#include "reshard/model/digest.hpp"
#include "reshard/model/rows.hpp"

namespace reshard::live {

/// A wanted tensor is one move of a whole tensor, or has a move for each of its parts. Moves have the order of the
/// wanted tensors.
class WantedMoves {
public:
    struct Move {
        std::size_t tensor = 0;  ///< of the publisher
        std::size_t wanted = 0;  ///< of the subscriber
        /// Of its digest, modulo Digest::prime. With these weights the digests of all moves on all ranks add up to the
        /// digests of the compared tensors. 0: the tensor is not compared.
        std::uint64_t weight = 0;
    };

    /// Errors: mismatch, unsupported (see Subscriber::connect); as RowSchedule::make.
    [[nodiscard]] static Result<WantedMoves> make(std::vector<NamedTensor> offered, Index publisher_ranks,
                                                  std::span<const WantedTensor> wanted, bool checks_bytes);

    /// The rows that a rank of the subscriber receives, in the order of the wanted tensors. A row's `array` is its
    /// move.
    [[nodiscard]] std::vector<Row> rows(Index rank) const;

    [[nodiscard]] const std::vector<NamedTensor>& tensors() const { return tensors_; }  ///< of the publisher
    [[nodiscard]] const std::vector<Move>& moves() const { return moves_; }
    [[nodiscard]] const std::vector<Index>& tensor_of_moves() const { return tensor_of_moves_; }
    [[nodiscard]] const std::vector<DType>& sent_dtypes() const { return sent_; }  ///< of each wanted tensor
    [[nodiscard]] const DigestKeys& keys() const { return keys_; }

    /// The sum of the digests of the compared tensors. `digests` has one for each tensor of the publisher.
    [[nodiscard]] std::uint64_t content_of(const std::byte* digests) const;

private:
    WantedMoves() = default;
    [[nodiscard]] Result<std::size_t> find(const std::string& name) const;
    [[nodiscard]] Result<void> check_cast(std::size_t tensor, const WantedTensor& wanted) const;
    [[nodiscard]] Result<void> add_whole(const WantedTensor& one, std::vector<PartProblem>& problems);
    [[nodiscard]] Result<void> add_parts(const WantedTensor& one, std::vector<PartProblem>& problems);
    [[nodiscard]] Result<void> weigh(std::span<const PartProblem> problems);

    std::vector<NamedTensor> tensors_;
    std::vector<Move> moves_;
    std::vector<Index> tensor_of_moves_;
    std::vector<std::size_t> compared_;  // tensors
    std::vector<DType> sent_;
    std::optional<RowSchedule> schedule_;
    Index publisher_ranks_ = 0;
    DigestKeys keys_;
};

}  // namespace reshard::live
