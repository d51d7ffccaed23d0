// A transport that puts chunks into memory of the other job, beside a stream that says which chunks have landed. UCX is
// one (ucx.cpp). A connection without it sends the same chunks through the stream.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "live/transport/socket.hpp"

namespace reshard::live {

/// The devices that UCX may use.
enum class Devices : std::uint16_t { none, rdma, any };

inline constexpr Index chunk_bytes = Index{1} << 18;  ///< the most of one chunk
inline constexpr Index landing_chunks = 8;            ///< the most chunks that are put and not taken

/// Memory of a subscriber's rank for the chunks of one rank of the publisher. Chunk k has the place k modulo
/// landing_chunks. The publisher writes to a place until it says that the chunk has landed, and again when the
/// subscriber has taken it. So a late chunk never overwrites another one.
class Landing {
public:
    virtual ~Landing() = default;
    [[nodiscard]] virtual Result<std::string> text() const = 0;  ///< tells Puts::lane() of the publisher where it is
    [[nodiscard]] virtual const std::byte* chunk(Index number) const = 0;
};

/// The way to a landing. Nothing waits.
class Lane {
public:
    virtual ~Lane() = default;
    /// Memory of this process for the next chunk. nullptr: all are in use until a chunk is taken.
    [[nodiscard]] virtual char* room() = 0;
    virtual void put(Index bytes) = 0;        ///< puts the next chunk. pre: room() has its bytes
    [[nodiscard]] virtual bool landed() = 0;  ///< the oldest chunk that has not landed before has landed now
    virtual void taken() = 0;                 ///< the subscriber has taken the oldest chunk that has landed
    /// The peer or the link is lost: no chunk lands any more.
    [[nodiscard]] virtual bool has_failed() const = 0;
};

/// One rank's access to the transport. Calls are serialized. It outlives its landings and lanes.
class Puts {
public:
    virtual ~Puts() = default;
    [[nodiscard]] virtual int number() const = 0;  ///< for poll()
    /// Does the work that can be done now. Returns true if the rank may wait until number() can be read.
    [[nodiscard]] virtual bool work() = 0;
    [[nodiscard]] virtual Result<std::unique_ptr<Landing>> landing() = 0;
    /// Errors: backend (this rank cannot reach the landing).
    [[nodiscard]] virtual Result<std::unique_ptr<Lane>> lane(const std::string& landing) = 0;
};

/// Opens UCX. Errors: unsupported (the build or the machine has no UCX, or no such device).
[[nodiscard]] Result<std::unique_ptr<Puts>> open_ucx(Devices devices);

}  // namespace reshard::live
