// The tiles of one end of a move as numbers, device by device.
#pragma once

#include <optional>
#include <span>

#include "reshard/layout.hpp"

namespace reshard {

/// One cut dimension in the number of a tile: its shard is the number / below mod shards.
struct CodeDim {
    std::size_t dim = 0;  ///< of the array
    Index shards = 1;
    Index below = 1;  ///< numbers of the dimensions after it
};

/// The devices of a mesh, ascending, and what tile each has. Devices are in teams by some digits of their positions:
/// code = team * tiles + number of the tile.
class TileCodes {
public:
    /// `dims`: the dimensions that either end cuts. nullopt if the team's digits and the layout's form no chain.
    [[nodiscard]] static std::optional<TileCodes> make(const Layout& layout, const AtomList& team,
                                                       std::span<const std::size_t> dims);

    /// Numbers the codes so that the last dimension is the one that changes most between devices of a block of this
    /// size.
    void number(Index block);

    [[nodiscard]] std::span<const Index> codes() const { return codes_; }  ///< by place
    /// Of the `number`th of the dimensions that were given.
    [[nodiscard]] Index shard(std::size_t number, std::size_t place) const { return shards_[number][place]; }
    [[nodiscard]] Index team(std::size_t place) const { return teams_.empty() ? 0 : teams_[place]; }
    [[nodiscard]] Index tiles() const { return tiles_; }                                    ///< of a team
    [[nodiscard]] std::span<const CodeDim> dims() const { return dims_; }                   ///< most major first
    [[nodiscard]] std::size_t devices() const { return static_cast<std::size_t>(count_); }  ///< of the mesh
    [[nodiscard]] Index device(std::size_t place) const {                                   ///< ascending
        return devices_.empty() ? static_cast<Index>(place) : devices_[place];
    }
    [[nodiscard]] Index last_device() const;
    [[nodiscard]] Index replicas() const { return replicas_; }  ///< devices of a team that have the same tile
    /// The first place from `from` on with this device or a later one.
    [[nodiscard]] std::size_t place_from(std::size_t from, Index device) const;

private:
    void list_devices(const Mesh& mesh);
    /// The weight of a digit's value in one of the numbers: the shard numbers first, then the team's.
    [[nodiscard]] Index adds(std::size_t digit, std::size_t number) const {
        return adds_[digit * (given_.size() + 1) + number];
    }
    [[nodiscard]] std::vector<Index> number_of(std::size_t number) const;

    std::vector<CodeDim> given_;
    std::vector<CodeDim> dims_;               // in the order of the codes
    AtomList digits_;                         // of positions, most major first
    std::vector<Index> adds_;                 // by digit and number
    std::span<const Index> devices_;          // ascending; none where place is device
    std::vector<Index> positions_;            // by place; none where they ascend
    std::vector<std::vector<Index>> shards_;  // by dimension as given, and place
    std::vector<Index> teams_;                // by place; none where there is one
    Index count_ = 1;                         // devices
    Index tiles_ = 1;
    Index replicas_ = 1;
    std::vector<Index> codes_;
};

}  // namespace reshard
