// The tiles of up to 64 devices, one by one. For networks whose blocks no digits of the search describe.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "src/price/level_price.hpp"
#include "synth/search/space.hpp"

namespace reshard {

/// A set of devices of a mesh: one bit for each, in ascending order of the devices.
using DeviceSet = std::uint64_t;

/// Counts what moves between two states. Tiles of one state are the same or have nothing in common, so the elements of
/// a block of devices are a sum over its different tiles.
class DeviceTiles {
public:
    /// pre: the mesh has at most `devices_max` devices.
    DeviceTiles(const SearchSpace& frame, const Machine& machine);
    static constexpr Index devices_max = 64;

    /// True if the traffic below is exact: the shards of a list have one size at every device, and no digits are teams
    /// (team_atoms).
    [[nodiscard]] bool counts_moves() const { return counts_moves_; }
    /// The devices at these positions of the mesh.
    [[nodiscard]] DeviceSet set_of(std::span<const Index> positions) const;

    /// The states that the functions below are asked about.
    void between(const State& held, const State& wanted);
    /// Elements that the devices of this block inside `level` want together and none of them holds; whatever their
    /// summands. At level 0 a block is one device. pre: the frame has every digit of its devices.
    [[nodiscard]] Index lacking(std::size_t level, DeviceSet block) const;
    /// The traffic of a step as the schedules carry it (stripes_of, partners). pre: counts_moves()
    void exchange(const LevelSpans& out);
    void permute(const LevelSpans& out);
    void collective(StepKind kind, std::span<const Atom> group, const LevelSpans& out);

private:
    using Numbers = std::vector<Index>;
    using Sets = std::array<DeviceSet, devices_max>;  // by device
    // The devices with the same tile as each, and by level one device for each different tile in a block inside it.
    struct Tiles {
        Sets same{};
        std::vector<DeviceSet> once;
    };
    // The shard of each device in a list, and the devices of each shard.
    struct Cut {
        std::array<std::uint8_t, devices_max> shard{};
        std::vector<DeviceSet> devices;
    };
    // The indices that shards of a dimension have in common, before and after.
    struct Common {
        Numbers elements;  // for each wanted shard: by held shard
        Numbers wants;     // indices of each wanted shard
        Index part = 0;    // indices that any two shards have in common if they have some; 0 if it varies
        std::vector<std::pair<std::size_t, std::size_t>> meetings;  // held and wanted shards that have some
    };
    // A dimension before and after.
    struct Contact {
        const Cut* held = nullptr;
        const Cut* wanted = nullptr;
        const Common* common = nullptr;
        std::vector<DeviceSet> holders;  // by wanted shard: devices that hold some of it
        std::vector<DeviceSet> wanters;  // by held shard: devices that want some of it
        [[nodiscard]] const Index* elements() const { return common->elements.data(); }
        [[nodiscard]] Index met(std::size_t holder, std::size_t wanter) const {
            return elements()[wanted->shard[wanter] * held->devices.size() + held->shard[holder]];
        }
    };
    // The indices that one shard meets, by shard of the other end.
    struct Factor {
        const Index* met;
        const Contact* contact;
    };
    [[nodiscard]] const Cut& cut_of(List list);
    [[nodiscard]] const Common& common_of(std::size_t dim, List held, List wanted);
    [[nodiscard]] const Contact& contact_of(std::size_t dim, List held, List wanted);
    [[nodiscard]] const Tiles& tiles_of(const State& state);
    [[nodiscard]] Index met(std::size_t holder, std::size_t wanter) const;
    template <class Visit>
    void each_tile(const Visit& visit) const;
    template <class Visit>
    void each_block(const DeviceSet& held, const DeviceSet& wanted, const Visit& visit) const;
    void serve(std::size_t level, DeviceSet holders, DeviceSet wanters);
    void add(std::size_t level, std::size_t from, std::size_t to, Index elements) {
        const std::size_t first = level * positions_.size();
        sent_[first + from] += elements;
        received_[first + to] += elements;
        ++messages_[first + to];
        pair_[level] = std::max(pair_[level], elements);
    }
    [[nodiscard]] Index busiest(const Numbers& counts, std::size_t level) const;
    void begin();
    void end(const LevelSpans& out, Index times = 1, Index parts = 1) const;

    const SearchSpace& frame_;
    const Machine& machine_;
    bool counts_moves_ = false;
    Numbers positions_;  // by device
    DeviceSet all_ = 0;
    Sets alike_{};  // by device: the devices that agree with it in the digits that the frame cancelled
    std::vector<std::vector<DeviceSet>> blocks_;  // by level
    std::vector<DeviceSet> around_;               // by level and device: its block
    State held_;                                  // the states at hand
    State wanted_;
    const Tiles* held_tiles_ = nullptr;
    const Tiles* wanted_tiles_ = nullptr;
    const Cut* held_summands_ = nullptr;
    const Cut* wanted_summands_ = nullptr;
    Index whole_ = 1;  // elements of the dimensions that neither cuts
    InlineVector<const Contact*, lists_max> contacts_;
    InlineVector<const Contact*, lists_max> uneven_;  // the contacts whose parts vary
    Index part_ = 1;        // elements that two tiles have in common if they have some, in all dimensions but these
    Index wants_each_ = 1;  // elements of a wanted tile, in all dimensions but these
    std::unordered_map<std::uint32_t, Cut> cut_;                                 // by list
    std::unordered_map<std::uint64_t, Tiles> tiles_;                             // by state
    std::array<std::unordered_map<std::uint64_t, Common>, lists_max> common_;    // by dimension
    std::array<std::unordered_map<std::uint64_t, Contact>, lists_max> contact_;  // by dimension
    Numbers sent_;  // in the move at hand, by level and device
    Numbers received_;
    Numbers messages_;  // devices that it receives from
    Numbers pair_;      // by level: elements from one device to another, at most
    Numbers wants_;     // elements of the tile at hand, by device
};

}  // namespace reshard
