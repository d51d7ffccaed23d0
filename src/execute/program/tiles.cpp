#include "src/execute/program/tiles.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "src/base/try.hpp"

namespace reshard::program {

Result<ProgramTiles> ProgramTiles::make(const Judged<ProgramSchedule>& made, const DeviceScript& script,
                                        Backend& backend) {
    ProgramTiles tiles;
    tiles.backend_ = &backend;
    tiles.limit_ = script.limit;
    for (const ScriptMemory& memory : script.memory) {
        const std::size_t number = tiles.places_.size();
        tiles.places_.push_back({memory});
        if (memory.taken_by) tiles.taken_by_[*memory.taken_by].push_back(number);
        if (memory.handed_to) tiles.handed_to_[*memory.handed_to].push_back(number);
        for (const std::size_t user : memory.freed_by) tiles.freed_by_[user].push_back(number);
    }
    for (const auto& [activity, given] : tiles.handed_to_) {
        std::vector<std::size_t> arrays;
        for (const std::size_t number : at(tiles.taken_by_, activity))
            if (tiles.places_[number].script.layout) arrays.push_back(number);
        const ScheduledActivity& heir = made.schedule().order[activity];
        RESHARD_CHECK(tiles.take_over(name_of(made.program(), made.schedule(), heir), given, arrays));
    }
    tiles.reset();
    return tiles;
}

// The limit counts donated memory as the made arrays' from the start of the task on. So it must be theirs, byte by
// byte.
Result<void> ProgramTiles::take_over(const std::string& task, const std::vector<std::size_t>& given,
                                     const std::vector<std::size_t>& made) {
    std::map<std::size_t, Index> left;
    for (const std::size_t number : given) left[number] = places_[number].script.bytes;
    for (const std::size_t heir : made) {
        const Index bytes = places_[heir].script.bytes;
        const auto from = std::ranges::find_if(given, [&](std::size_t number) { return left[number] >= bytes; });
        if (bytes == 0 || from == given.end()) continue;
        places_[heir].heir_of = *from;
        places_[heir].within = static_cast<std::size_t>(places_[*from].script.bytes - left[*from]);
        left[*from] -= bytes;
    }
    for (const auto& [number, bytes] : left) {
        if (bytes == 0) continue;
        return fail(Code::unsupported,
                    fmt::format("task {} donates {} of {} bytes, and its made arrays take over only {} of them; a run "
                                "needs made arrays that fill the memory",
                                task, places_[number].script.name, places_[number].script.bytes,
                                places_[number].script.bytes - bytes));
    }
    return {};
}

std::span<const std::size_t> ProgramTiles::at(const Lists& lists, std::size_t activity) {
    const auto found = lists.find(activity);
    return found == lists.end() ? std::span<const std::size_t>() : std::span(found->second);
}

std::optional<std::size_t> ProgramTiles::find(std::optional<std::size_t> maker, const std::string& array) const {
    const auto is_it = [&](const Place& place) {
        return place.script.layout && place.script.taken_by == maker && place.script.name == array;
    };
    if (maker) {
        for (const std::size_t number : at(taken_by_, *maker))
            if (is_it(places_[number])) return number;
        return std::nullopt;
    }
    const auto found = std::ranges::find_if(places_, is_it);
    if (found == places_.end()) return std::nullopt;
    return static_cast<std::size_t>(found - places_.begin());
}

std::span<std::byte> ProgramTiles::bytes(std::size_t tile) const {
    const Place& place = places_[tile];
    if (!place.memory) return {};
    return place.memory->bytes().subspan(place.offset, static_cast<std::size_t>(place.script.bytes));
}

std::span<std::byte> ProgramTiles::workspace(std::size_t move) const {
    for (const std::size_t number : at(taken_by_, move))
        if (!places_[number].script.layout) return bytes(number);
    return {};
}

Result<void> ProgramTiles::allocate(Place& place) {
    if (place.script.bytes > 0) {
        RESHARD_ASSIGN(place.memory, backend_->allocate(place.script.bytes));
    }
    place.held = true;
    held_ += place.script.bytes;
    most_ = std::max(most_, held_);
    return {};
}

void ProgramTiles::release(Place& place) {
    if (!std::exchange(place.held, false)) return;
    place.memory.reset();
    held_ -= place.script.bytes;
}

Result<void> ProgramTiles::hold(std::size_t tile) {
    if (is_held(tile)) return {};
    const ScriptMemory& wanted = places_[tile].script;
    if (held_ + wanted.bytes <= limit_) return allocate(places_[tile]);
    return fail(Code::usage, fmt::format("array {} takes {} bytes, and this rank holds {} of at most {}: free the kept "
                                         "arrays of the last run first",
                                         wanted.name, wanted.bytes, held_, limit_));
}

void ProgramTiles::reset() {
    for (Place& place : places_) {
        place.users_left = place.script.freed_by.size();
        if (place.script.taken_by) release(place);
    }
}

Index ProgramTiles::takes(std::size_t activity) const {
    Index bytes = 0;
    for (const std::size_t number : at(taken_by_, activity)) bytes += places_[number].script.bytes;
    return bytes;
}

bool ProgramTiles::fits(std::size_t activity) const {
    Index held = held_ + takes(activity);
    for (const std::size_t number : at(handed_to_, activity)) held -= places_[number].script.bytes;
    return held <= limit_;
}

Result<void> ProgramTiles::take(std::size_t activity) {
    for (const std::size_t number : at(handed_to_, activity)) {
        places_[number].held = false;  // the memory stays until the task has ended, which reads it
        held_ -= places_[number].script.bytes;
    }
    for (const std::size_t number : at(taken_by_, activity)) {
        Place& place = places_[number];
        if (!place.heir_of) {
            RESHARD_CHECK(allocate(place));
            continue;
        }
        const Place& given = places_[*place.heir_of];
        place.memory = given.memory;
        place.offset = given.offset + place.within;
        place.held = true;
        held_ += place.script.bytes;
        most_ = std::max(most_, held_);
    }
    return {};
}

void ProgramTiles::end(std::size_t activity) {
    for (const std::size_t number : at(handed_to_, activity)) places_[number].memory.reset();
    for (const std::size_t number : at(freed_by_, activity))
        if (--places_[number].users_left == 0) release(places_[number]);
}

}  // namespace reshard::program
