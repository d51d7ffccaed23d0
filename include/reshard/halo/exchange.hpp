// Fills halos: in place, or together with a move from another layout.
#pragma once

#include "reshard/backends/backend.hpp"
#include "reshard/elements.hpp"
#include "reshard/halo/plan.hpp"

namespace reshard {

/// The places of one array of a HaloExchange in the caller's buffers; row_major if not given. May differ from rank to
/// rank.
struct HaloStorages {
    std::optional<Storage> array;   ///< of the whole array, array_shape(target)
    std::optional<Storage> source;  ///< of the source's array with its halos, if it is not in place
};

/// How a HaloExchange chooses between the ways to fill.
struct HaloOptions {
    Machine machine = laptop();                 ///< the machine of the prices
    std::optional<HaloWay> way = std::nullopt;  ///< empty: as plan_halo chooses. Moves from a source run at once.
};

/// Arrays whose halos are filled together, prepared on one rank of a backend. The backend must outlive it. A rank
/// receives each element that it wants and does not have once. No protocol brings it less. Further cells of the same
/// element are local copies.
class HaloExchange {
public:
    /// Collective. Makes the schedules of this rank, compares the moves over all ranks, and prepares the backend.
    /// Errors: as validate; mismatch if a source has another shape or element type than its target, if a
    /// storage puts two elements in one place, if ranks bring different moves, or if the backend has too
    /// few ranks; unsupported (a source with summands); overflow; backend.
    [[nodiscard]] static Result<HaloExchange> prepare(std::span<const HaloMove> moves, Backend& backend,
                                                      std::span<const HaloStorages> storages = {},
                                                      const HaloOptions& options = {});
    /// The same for one array in place.
    [[nodiscard]] static Result<HaloExchange> prepare(const HaloLayout& layout, Backend& backend,
                                                      const std::optional<Storage>& array = std::nullopt);

    [[nodiscard]] std::size_t array_count() const { return arrays_.size(); }           ///< as many as moves
    [[nodiscard]] HaloWay way(std::size_t array) const { return arrays_[array].way; }  ///< how the array is filled
    /// Bytes that a run brings to this rank from others, for all arrays.
    [[nodiscard]] Index received_bytes() const { return received_bytes_; }
    [[nodiscard]] Index staging_bytes() const;   ///< held by the backend
    [[nodiscard]] std::string describe() const;  ///< how bytes move, for people

    /// Binds memory, one entry per array: `target` is its array, `source` the tile that it reads if it is not in place.
    /// One run is in flight at a time. Meanwhile the caller may read the blocks of arrays that are in place, and may
    /// touch nothing else. No run touches memory beyond the open borders. After a failed run nothing starts again.
    /// Errors: mismatch if a buffer is too small or null, or if memory that is written overlaps any other.
    [[nodiscard]] Result<std::unique_ptr<Bound>> bind(std::span<const Buffers> buffers);
    /// Binds, starts and waits, for one array in place. Errors also: mismatch if the elements are of another type.
    [[nodiscard]] Result<void> run(Elements array);
    /// Says that this rank does not start a run. Ranks that wait for it are told, unless it starts within a second.
    void report_failure(const Error& why);

private:
    // The rounds of one array, and the memory that they need.
    struct Array {
        std::size_t rounds = 0;
        HaloWay way = HaloWay::at_once;
        DType dtype = DType::f32;
        bool in_place = false;
        Index source_bytes = 0;
        Index target_bytes = 0;
    };
    struct State;
    HaloExchange() = default;
    [[nodiscard]] Result<std::unique_ptr<Bound>> try_bind(std::span<const Buffers> buffers) const;

    std::vector<Array> arrays_;
    std::shared_ptr<State> state_;
    Index received_bytes_ = 0;
};

}  // namespace reshard
