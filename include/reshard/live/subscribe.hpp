// A job that takes versions of arrays from another job, in layouts of its own. docs/live.md explains it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reshard/layout.hpp"
#include "reshard/live/group.hpp"
#include "reshard/model/rows.hpp"

namespace reshard::live {

/// A part of a wanted array.
struct WantedPart {
    std::string name;  ///< of an array of the publisher
    /// The part of that array, and its place in the wanted one. The source's layout gives only the shape in which the
    /// part sees the array; the target's has the wanted layout. Element types do not matter.
    PartProblem move;
};

/// An array that this job wants.
struct WantedTensor {
    std::string name;  ///< at the publisher
    Layout layout;     ///< over the ranks of this job: device r is rank r. This job casts to its element type
    /// If not empty, the array is made of these parts, and `name` is its own. Elements in no part are 0. All parts have
    /// one element type at the publisher. Rules make them (wanted_by_rules).
    std::vector<WantedPart> parts = {};
};

/// Options of a subscriber.
struct SubscribeOptions {
    /// A publisher or a rank of this job that is silent for this long counts as lost. So all ranks of the job must make
    /// a call within this time of each other.
    std::chrono::milliseconds lease = std::chrono::seconds(30);
    std::chrono::milliseconds connect_limit = std::chrono::minutes(1);  ///< for the publisher to be there
    /// Versions are received into the memory of the version before, so there is one buffer. From the beginning of an
    /// update's read on, and after a failed one, version() is 0 and tile() fails until a version is whole on all ranks.
    bool in_place = false;

    /// If set, called by the thread of an update with the bytes of this rank that have come, and their number in all.
    std::function<void(Index received, Index bytes)> progress = {};
    /// If set, called by the thread of an update when a tensor has come, with its tile, which is only to be read.
    /// Tensors come in the order of the wanted list. The ranks have not agreed on the version yet: if the update
    /// fails, its tiles are void. If the version is gone before it is whole, tensors come again, from the first one on.
    std::function<void(std::size_t tensor, std::span<const std::byte> tile)> arrived = {};
};

/// Holds the newest whole version that the job has taken. At no moment do two ranks of the job hold out different
/// versions, whatever process dies or stalls. The calls are collective and not thread-safe.
///
/// Memory: two buffers for the tiles of this rank: one is read, the other is filled. In place they are one. Tensors
/// that are cast are there once more, in the publisher's type.
class Subscriber {
public:
    /// Connects to a publisher. Collective over the group, which must outlive the subscriber. Errors on
    /// all ranks: mismatch (an array that the publisher does not have, or of another shape); unsupported (a type that
    /// the publisher's cannot be cast to); as RowSchedule::make; backend (no publisher within `connect_limit`, another
    /// protocol, a rank is lost).
    [[nodiscard]] static Result<Subscriber> connect(Group& group, const std::string& endpoint,
                                                    std::span<const WantedTensor> tensors,
                                                    const SubscribeOptions& options = {});
    Subscriber(Subscriber&&) noexcept;             ///< the other one may only be destroyed or assigned to
    Subscriber& operator=(Subscriber&&) noexcept;  ///< the same
    ~Subscriber();

    /// Takes the newest version. Waits until there is one that is newer than version(). Returns its number, the same on
    /// all ranks. Errors on all ranks: backend (no newer version within `limit`; a process of either job is lost or
    /// silent, which is named; wrong bytes). The version before stays, unless SubscribeOptions::in_place let it be
    /// overwritten.
    [[nodiscard]] Result<Index> update(std::chrono::milliseconds limit);

    /// The same, but does not wait: returns nullopt if no newer version is ready. All ranks call it.
    [[nodiscard]] Result<std::optional<Index>> poll();

    /// The version that tile() shows; 0: none. It is also 0 after an error that left the result of a vote unknown here;
    /// then reconnect() finds it out. In place it is 0 while parts of several versions are in memory.
    [[nodiscard]] Index version() const;

    /// This rank's tile of tensor i, dense and row-major. It stays unchanged until the second update after this one, or
    /// in place until the next one. Errors: usage (no such tensor; no version); backend (the result of the last vote is
    /// unknown; in place, the last update has failed and left no whole version).
    [[nodiscard]] Result<std::span<const std::byte>> tile(std::size_t tensor) const;

    /// Connects again, after an error, with a new group of as many ranks. Each process has its rank of before. The
    /// version stays, if all ranks have it. Versions never go back. Errors: as connect; usage (another rank).
    [[nodiscard]] Result<void> reconnect(Group& group);

    /// Closes the connections to the publisher. The version and its tiles stay. reconnect() opens them again.
    void close();

private:
    class Session;
    explicit Subscriber(std::unique_ptr<Session> session);
    std::unique_ptr<Session> session_;
};

}  // namespace reshard::live
