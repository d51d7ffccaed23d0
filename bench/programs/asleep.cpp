#include "bench/programs/asleep.hpp"

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "src/base/hash.hpp"

namespace reshard::program {
namespace {

// Calls `visit` with each byte and its right value.
template <class Bytes, class Visit>
void each_byte(const std::string& array, const Layout& layout, Index rank, Bytes bytes, const Visit& visit) {
    Hash hash;
    hash.add(array);
    const auto seed = static_cast<std::size_t>(hash.value());
    const auto size = static_cast<std::size_t>(size_of(layout.dtype));
    const Tile held = tile(layout, rank);
    std::size_t at = 0;
    for (const Interval& interval : held.front().intervals) {
        const std::size_t end = static_cast<std::size_t>(interval.end) * size;
        for (std::size_t i = static_cast<std::size_t>(interval.begin) * size; i < end; ++i, ++at)
            visit(bytes[at], static_cast<std::byte>(seed + i + (i >> 8U)));
    }
}

}  // namespace

std::set<std::string> moved_arrays(const Program& program) {
    std::map<std::string, const Layout*> made;
    std::set<std::string> moved;
    for (const Task& task : program.tasks) {
        for (const ProgramUse& use : task.uses) {
            const auto at = made.find(use.array);
            if (at != made.end() && !equivalent(*at->second, use.layout)) moved.insert(use.array);
        }
        for (const ProgramArray& array : task.makes) made[array.name] = &array.layout;
    }
    return moved;
}

void write_values(const std::string& array, const Layout& layout, Index rank, std::span<std::byte> bytes) {
    each_byte(array, layout, rank, bytes, [](std::byte& byte, std::byte right) { byte = right; });
}

Index count_wrong(const std::string& array, const Layout& layout, Index rank, std::span<const std::byte> bytes) {
    Index wrong = 0;
    each_byte(array, layout, rank, bytes, [&](std::byte byte, std::byte right) { wrong += byte == right ? 0 : 1; });
    return wrong;
}

void sleep_until(double begin, Index picoseconds, const std::function<void()>& look) {
    constexpr double slice = 0.0005;  // seconds
    const double end = begin + static_cast<double>(picoseconds) * 1e-12;
    look();
    for (double left = end - MPI_Wtime(); left > 0; left = end - MPI_Wtime()) {
        std::this_thread::sleep_for(std::chrono::duration<double>(std::min(left, slice)));
        look();
    }
}

}  // namespace reshard::program
