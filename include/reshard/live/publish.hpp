// A job that publishes versions of its arrays to other jobs, which were started apart. docs/live.md explains it.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/layout.hpp"
#include "reshard/live/group.hpp"
#include "reshard/live/status.hpp"

namespace reshard::live {

/// An array of the publishing job, as this rank holds it.
struct PublishedTensor {
    std::string name;                      ///< without blanks; the subscriber asks for it by this name
    Layout layout;                         ///< over the ranks of the job: device r is rank r
    std::span<const std::byte> tile = {};  ///< dense and row-major; read by commit(version). Empty: commit brings it
    std::optional<DType> held = {};  ///< the element type of tiles, if it is another: commit casts to the layout's
};

/// The way of the rows between machines. A path as endpoint is always shared memory.
enum class Transport {
    automatic,  ///< UCX if both ends have RDMA and reach each other by it, else TCP
    tcp,        ///< TCP
    ucx,        ///< UCX if the subscriber has it, over the devices that UCX chooses, else TCP
};

/// The transport that a text names: `auto`, `tcp` or `ucx`. nullopt: none.
[[nodiscard]] std::optional<Transport> transport_of(std::string_view text);

/// Options of a publisher.
struct PublishOptions {
    /// A reader that is silent for this long loses its claim to a version. Readers learn of a stalled publisher after
    /// the same time. At least 100 ms.
    std::chrono::milliseconds lease = std::chrono::seconds(30);
    bool check_bytes = true;  ///< each version has a digest that every subscriber compares; costs one pass over tiles
    Index bytes_per_second = 0;  ///< that this rank sends over TCP at most, to all readers together; 0: no limit
    /// A commit fails if the versions of this rank would take more. The newest one, the one before and the next one are
    /// always there at once, so at least three times the tiles. 0: no limit.
    Index memory_bytes = 0;
    Transport transport = Transport::automatic;  ///< to subscribers on other machines
};

/// Publishes versions. Subscribers take them from shared memory or over TCP, each at its own time. One thread of its
/// own serves them. The calls are collective and not thread-safe.
///
/// Memory: a copy of the tiles for the newest version, for the one before, and for each older one that is still read.
class Publisher {
public:
    /// Listens for subscribers. An endpoint with a `/` is a path: rank r listens at the Unix socket `endpoint`.r, and
    /// subscribers on this machine read shared memory. Otherwise it is `host:port`, and subscribers anywhere receive
    /// their rows over TCP: rank 0 listens there, and the others at free ports. Host 0.0.0.0 is every network of this
    /// machine; port 0 is a free one. Collective over the group, which must outlive the publisher. Errors on all ranks:
    /// usage, mismatch (bad names, tiles or layouts; ranks that name different tensors); unsupported (unreduced axes, a
    /// cast, Transport::ucx without UCX); backend (another process listens there; a rank is lost).
    [[nodiscard]] static Result<Publisher> open(Group& group, const std::string& endpoint,
                                                std::span<const PublishedTensor> tensors,
                                                const PublishOptions& options = {});
    Publisher(Publisher&&) noexcept;             ///< the other one may only be destroyed or assigned to
    Publisher& operator=(Publisher&&) noexcept;  ///< the same
    ~Publisher();  ///< closes the connections: subscribers keep their last version and get an error

    /// Copies the tiles, and offers them to subscribers as a version. They may change when it returns. It never waits
    /// for a subscriber. Collective. Errors: usage (not newer than the versions before); backend (memory; a rank is
    /// lost or fails; readers keep more old versions than `memory_bytes` allows). Subscribers then keep the version
    /// before.
    [[nodiscard]] Result<void> commit(Index version);

    /// The same with the tiles of this version: one for each tensor, in their order, dense and row-major.
    /// Errors: also mismatch (a tile of another size).
    [[nodiscard]] Result<void> commit(Index version, std::span<const std::span<const std::byte>> tiles);

    /// The endpoint that subscribers connect to: the one that was given, with the port in place of 0 and this machine's
    /// name in place of 0.0.0.0. The same on all ranks.
    [[nodiscard]] std::string endpoint() const;
    [[nodiscard]] Index newest() const;                  ///< the last version that was offered; 0: none
    [[nodiscard]] std::size_t subscriber_count() const;  ///< processes that are connected to this rank
    [[nodiscard]] RankStatus status() const;             ///< of this rank

private:
    class Session;
    explicit Publisher(std::unique_ptr<Session> session);
    std::unique_ptr<Session> session_;
};

}  // namespace reshard::live
