// The tiles of one rank of a subscriber: one version to show, and the next one as it comes.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "live/tensors.hpp"
#include "src/copy/kernels/dispatch.hpp"

namespace reshard::live {

/// Two buffers for the wanted tiles: one is shown, the other is filled. In place they are one. A tensor that the
/// publisher sends in another element type comes into memory of its own, and is cast into the buffer when it is whole.
class WantedTiles {
public:
    /// Makes room for the tiles of a rank. `sent` has the publisher's element types. The tiles that are
    /// shown stay, if the tensors are the same. pre: each type can be cast.
    void make_room(std::span<const NamedTensor> tensors, std::span<const DType> sent, Index rank, bool in_place);

    /// The memory into which each tensor comes, one after another.
    [[nodiscard]] std::span<const std::span<std::byte>> landing() const { return landing_; }
    /// Casts a tensor that has come whole, if its type differs. Returns its tile of the next version.
    [[nodiscard]] std::span<const std::byte> take(std::size_t tensor);
    [[nodiscard]] std::span<const std::byte> shown(std::size_t tensor) const {
        return tile(shown_, tensor);
    }  ///< its tile
    /// Shows the next version. The memory of the one before, or in place the same memory, is filled from now on.
    void turn();

private:
    // Copies are fastest into whole cache lines.
    struct alignas(line_bytes) Line {
        std::byte bytes[line_bytes];
    };
    using Lines = std::vector<Line>;  // zeros at first: elements that never come are 0
    [[nodiscard]] static std::span<std::byte> bytes_of(Lines& lines, Index begin, Index bytes);

    [[nodiscard]] std::span<std::byte> tile(std::size_t buffer, std::size_t tensor) const;
    [[nodiscard]] std::size_t filled() const { return buffers_[1].empty() ? 0 : 1 - shown_; }
    void place();

    std::vector<DType> wanted_;  // element types
    std::vector<DType> sent_;
    std::vector<Index> offsets_;  // in a buffer
    std::vector<Index> bytes_;    // of each tile
    mutable std::array<Lines, 2> buffers_;
    std::vector<Index> cast_offsets_;  // in `uncast_`
    Lines uncast_;                     // tensors of another type, as they come
    std::vector<std::span<std::byte>> landing_;
    std::size_t shown_ = 0;
};

}  // namespace reshard::live
