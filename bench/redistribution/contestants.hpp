// The contestants of the benchmark: ways to move an array from the source tiles to the target tiles of all ranks.
#pragma once

#include <memory>

#include "bench/timing.hpp"
#include "redistribution/problems.hpp"
#include "reshard/backends/mpi.hpp"

namespace reshard::bench {

class Contestant {
public:
    virtual ~Contestant() = default;
    /// The memory of this rank's tiles. The benchmark fills the source and checks the target.
    [[nodiscard]] virtual std::span<std::byte> source() = 0;
    [[nodiscard]] virtual std::span<std::byte> target() = 0;
    virtual void run() = 0;                                        ///< collective; ends the job on an error of MPI
    [[nodiscard]] virtual Index extra_bytes() const { return 0; }  ///< held beside source and target, on this rank
    [[nodiscard]] virtual std::string note() const { return {}; }
};

/// Memory of the program's own: pages that have been touched.
class Buffer {
public:
    explicit Buffer(Index bytes);
    [[nodiscard]] std::span<std::byte> bytes() const { return {start_.get(), size_}; }

private:
    struct Free {
        void operator()(std::byte* start) const;
    };
    std::size_t size_;
    std::unique_ptr<std::byte, Free> start_;
};

/// A pair of buffers that several contestants use in turn.
struct Pair {
    Buffer source;
    Buffer target;
};

enum class Kind { mpi, plan, roofline };

struct Entry {
    std::string name;
    Kind kind;
    std::unique_ptr<Contestant> contestant;
};

/// This library's, on memory of each kind. Collective.
[[nodiscard]] std::vector<Entry> plans(const Case& one, Backend& backend, const mpi::Options& options, Pair& own);

/// All contestants that can move this case, the roofline first. Collective.
[[nodiscard]] std::vector<Entry> contestants(const Case& one, Backend& backend, const mpi::Options& options, Pair& own);

}  // namespace reshard::bench
