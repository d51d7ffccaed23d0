// The memory of one rank in a run: tiles, scratch and workspaces, taken and freed as its script says.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "reshard/backends/backend.hpp"
#include "reshard/program/script.hpp"

namespace reshard::program {

class ProgramTiles {
public:
    /// Errors: unsupported if a task takes over memory of a donated array only in part.
    [[nodiscard]] static Result<ProgramTiles> make(const Judged<ProgramSchedule>& made, const DeviceScript& script,
                                                   Backend& backend);

    /// The number of a tile: of the array that an activity makes, or that is there from the beginning. Empty if this
    /// rank has no such tile.
    [[nodiscard]] std::optional<std::size_t> find(std::optional<std::size_t> maker, const std::string& array) const;
    [[nodiscard]] std::span<std::byte> bytes(std::size_t tile) const;      ///< empty if it is not held
    [[nodiscard]] std::span<std::byte> workspace(std::size_t move) const;  ///< of a move that has started
    [[nodiscard]] std::shared_ptr<Memory> memory(std::size_t tile) const { return places_[tile].memory; }
    [[nodiscard]] bool is_held(std::size_t tile) const { return places_[tile].held; }

    /// Holds a tile between runs. Errors: usage if it does not fit beside the tiles that are held; as
    /// Backend::allocate.
    [[nodiscard]] Result<void> hold(std::size_t tile);
    /// Between runs: only what is there from the beginning stays held.
    void reset();

    /// The bytes that an activity takes when it starts.
    [[nodiscard]] Index takes(std::size_t activity) const;
    /// Whether the memory that an activity takes fits the limit now.
    [[nodiscard]] bool fits(std::size_t activity) const;
    /// Hands over and takes the memory of an activity that starts. pre: it fits. Errors: as Backend::allocate.
    [[nodiscard]] Result<void> take(std::size_t activity);
    /// Frees what nobody uses after an activity has ended.
    void end(std::size_t activity);

    [[nodiscard]] Index most_bytes() const { return most_; }

private:
    struct Place {
        ScriptMemory script;
        std::optional<std::size_t> heir_of = {};  // the tile whose memory it takes over
        std::size_t within = 0;                   // where, in the bytes of that tile
        std::size_t offset = 0;                   // where it begins in `memory`
        std::size_t users_left = 0;
        bool held = false;
        std::shared_ptr<Memory> memory = {};
    };
    // By activity: the numbers of places.
    using Lists = std::map<std::size_t, std::vector<std::size_t>>;

    Result<void> take_over(const std::string& task, const std::vector<std::size_t>& given,
                           const std::vector<std::size_t>& made);
    Result<void> allocate(Place& place);
    void release(Place& place);
    [[nodiscard]] static std::span<const std::size_t> at(const Lists& lists, std::size_t activity);

    Backend* backend_ = nullptr;
    Index limit_ = index_max;
    std::vector<Place> places_;
    Lists taken_by_, freed_by_, handed_to_;
    Index held_ = 0;
    Index most_ = 0;
};

}  // namespace reshard::program
