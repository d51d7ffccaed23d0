// Exchanges boxes that ranks name: couplers, adaptive meshes, restarts with another decomposition.
#pragma once

#include "reshard/backends/backend.hpp"
#include "reshard/boxes/boxes.hpp"
#include "reshard/elements.hpp"

namespace reshard {

/// The places of this rank's boxes in the caller's buffers, one storage for each box. Each counts elements from the
/// start of the buffer. An empty list: the boxes lie one after another, each row-major. May differ from rank to rank.
struct BoxStorages {
    std::vector<Storage> have;  ///< in the buffer that a run reads
    std::vector<Storage> want;  ///< in the buffer that it writes
};

/// Arrays that all have the same boxes, prepared on one rank of a backend. The backend must outlive it. A run copies
/// all owned elements that somebody wants to each wanted box. A rank receives each element that it wants and does not
/// own once, in one round. No protocol brings it less. If several of its boxes want an element, the rest are local
/// copies.
class BoxExchange {
public:
    /// Collective. Each rank gives its own boxes; the ranks tell each other. The call waits for all ranks, so the ranks
    /// of a local world need a thread each.
    /// Errors: as validate(BoxTable); mismatch also if ranks bring other shapes or types, if there is not one storage
    /// for each box, or if two wanted elements share a place; overflow; backend.
    [[nodiscard]] static Result<BoxExchange> prepare(DType dtype, std::vector<Index> shape, const RankBoxes& own,
                                                     Backend& backend, const BoxStorages& storages = {},
                                                     std::size_t arrays = 1);
    /// Collective. The same if every rank knows the boxes of all ranks. Waits for nobody if the backend does not.
    /// Errors also: mismatch if ranks bring different tables, or if the backend has too few ranks.
    [[nodiscard]] static Result<BoxExchange> prepare(const BoxTable& table, Backend& backend,
                                                     const BoxStorages& storages = {}, std::size_t arrays = 1);

    [[nodiscard]] std::size_t array_count() const { return arrays_; }  ///< as prepared
    /// The traffic of this rank in a run, for all arrays together.
    [[nodiscard]] const BoxTraffic& traffic() const { return traffic_; }
    [[nodiscard]] Index have_bytes() const { return have_bytes_; }  ///< least size of a buffer that a run reads
    [[nodiscard]] Index want_bytes() const { return want_bytes_; }  ///< least size of a buffer that a run writes
    [[nodiscard]] Index staging_bytes() const;                      ///< held by the backend
    /// For people: the bytes of this rank, and how the backend moves them.
    [[nodiscard]] std::string describe() const;

    /// Binds memory, one entry per array: `source` has the owned boxes, `target` gets the wanted ones. One run is in
    /// flight at a time. It touches nothing but the boxes. After a failed run nothing starts again.
    /// Errors: mismatch if a buffer is too small or null, or if memory that is written overlaps any other.
    [[nodiscard]] Result<std::unique_ptr<Bound>> bind(std::span<const Buffers> buffers);
    /// Binds, starts and waits, for one array. Errors also: mismatch if the elements are of another type.
    [[nodiscard]] Result<void> run(ConstElements have, Elements want);
    /// Says that this rank does not start a run. Ranks that wait for it are told, unless it starts within a second.
    void report_failure(const Error& why);

private:
    struct State;
    BoxExchange() = default;

    DType dtype_ = DType::f32;
    std::size_t arrays_ = 0;
    Index rank_ = 0;
    Index have_bytes_ = 0;
    Index want_bytes_ = 0;
    BoxTraffic traffic_;
    std::shared_ptr<State> state_;
};

}  // namespace reshard
