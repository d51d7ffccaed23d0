// Adds halos to the blocks of their owners: the adjoint of a fill in place.
#pragma once

#include "reshard/backends/backend.hpp"
#include "reshard/elements.hpp"
#include "reshard/halo/halo.hpp"

namespace reshard {

/// Arrays whose halos are added to the blocks of their owners, prepared on one rank of a backend. The backend must
/// outlive it. A run adds to each element of a block all ghost cells that hold it: block + sum of copies. It leaves the
/// halos as they are. This is the transpose of HaloExchange in place: if H fills halos and S sums them, then
/// <H x, y> = <x, S y> for all blocks x and arrays y. Cells beyond an open border are not read. If the layout
/// replicates elements, each row of ranks adds up its own halos.
class HaloSum {
public:
    /// Collective. Makes the schedules of this rank, allocates room for the cells that it receives, compares the
    /// layouts over all ranks, and prepares the backend. `arrays`: the place of each array in the caller's buffer;
    /// row-major if not given. It may differ from rank to rank.
    /// Errors: as validate; unsupported (an element type that has no sums, memory on a device); mismatch if a storage
    /// puts two elements in one place, if ranks bring different layouts, or if the backend has too few ranks; overflow;
    /// backend.
    [[nodiscard]] static Result<HaloSum> prepare(std::span<const HaloLayout> layouts, Backend& backend,
                                                 std::span<const std::optional<Storage>> arrays = {});
    /// The same for one array.
    [[nodiscard]] static Result<HaloSum> prepare(const HaloLayout& layout, Backend& backend,
                                                 const std::optional<Storage>& array = std::nullopt);

    [[nodiscard]] std::size_t array_count() const;  ///< as many as layouts
    /// Bytes that a run brings to this rank from others, for all arrays. Each ghost cell travels once.
    [[nodiscard]] Index received_bytes() const;
    [[nodiscard]] Index workspace_bytes() const;  ///< held for the cells that this rank receives
    [[nodiscard]] Index staging_bytes() const;    ///< held by the backend
    [[nodiscard]] std::string describe() const;   ///< how bytes move, for people

    /// Binds memory, one entry per array; `target` is the array. One run is in flight at a time. Meanwhile the caller
    /// may read the halos, and may touch nothing else. A run adds in one order on every machine: the element, then its
    /// cells by ascending device and, on one device, in row-major order. A failed run leaves all blocks as they were,
    /// and nothing starts after it.
    /// Errors: mismatch if a buffer is too small or null, or if two overlap.
    [[nodiscard]] Result<std::unique_ptr<Bound>> bind(std::span<const Buffers> buffers);
    /// Binds, starts and waits, for one array. Errors also: mismatch if the elements are of another type.
    [[nodiscard]] Result<void> run(Elements array);
    /// Says that this rank does not start a run. Ranks that wait for it are told, unless it starts within a second.
    void report_failure(const Error& why);

private:
    struct State;
    HaloSum() = default;
    [[nodiscard]] Result<std::unique_ptr<Bound>> try_bind(std::span<const Buffers> buffers) const;

    std::shared_ptr<State> state_;
};

}  // namespace reshard
