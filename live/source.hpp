// A publisher as one rank of a subscriber sees it: connections, the rows that this rank takes, the memory of versions.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "live/meeting.hpp"
#include "live/protocol/message.hpp"
#include "live/row_copy.hpp"
#include "live/row_walk.hpp"
#include "live/transport/puts.hpp"
#include "live/transport/segment.hpp"
#include "live/wanted_moves.hpp"
#include "reshard/model/rows.hpp"

namespace reshard::live {

class Source {
public:
    /// Connects to every rank of the publisher, and works out the rows of this rank: at `endpoint`.0, ... if it is a
    /// path, else where rank 0 says. A rank that sends nothing of a version for `lease` is lost. Errors: as
    /// WantedMoves::make; mismatch (ranks of different publishers); backend.
    [[nodiscard]] static Result<Source> connect(const std::string& endpoint, std::span<const WantedTensor> wanted,
                                                const Group& group, std::chrono::milliseconds lease,
                                                Clock::time_point end);

    [[nodiscard]] std::size_t rank_count() const { return peers_.size(); }
    /// The element types of the wanted tensors as the publisher sends them.
    [[nodiscard]] const std::vector<DType>& sent_dtypes() const { return moves_->sent_dtypes(); }

    /// Bytes of each wanted tensor that come to this rank; and bytes that are still missing in the last generation of
    /// fetch().
    [[nodiscard]] const std::vector<Index>& bytes() const { return wanted_bytes_; }
    [[nodiscard]] const std::vector<Index>& missing() const { return missing_; }
    [[nodiscard]] Index generation() const { return generation_; }  ///< of the last fetch(); 0: none
    /// This rank's part of the digest of the last generation. pre: all its rows are there.
    [[nodiscard]] std::uint64_t part() const { return part_; }

    /// A message of a rank of the publisher, the generation whose rows have all come from it, or why it is lost.
    struct News {
        std::size_t rank = 0;
        std::optional<Message> message = {};
        Index fetched = 0;        // a generation: its rows have come, or come no more if the rank is lost
        std::string reason = {};  // the rank is lost
    };
    [[nodiscard]] std::optional<News> next();  ///< nullopt: nothing has come
    /// Copies the rows of the next wanted tensor that lie in shared memory. Returns their bytes; 0: no row is left.
    Index copy_tensor();
    void wait(Clock::time_point end) const;  ///< until something may have come; not if rows are left to copy
    void send(std::size_t rank, const Message& message);

    /// Takes the rows of a granted version from one rank of the publisher. pre: the grant was returned by next().
    /// `tiles` has the memory of each wanted tensor and must outlive the fetch. Returns true if all rows are there. If
    /// not, next() tells when they are; copy_tensor() copies them if they lie in shared memory. Errors: backend.
    [[nodiscard]] Result<bool> fetch(std::size_t rank, const Fetch& fetch, std::span<const std::span<std::byte>> tiles);

private:
    /// The rows of a generation, from one rank of the publisher.
    struct Taking {
        Index generation = 0;
        std::span<const std::span<std::byte>> tiles;
        RowCopy copy;
        RowWalk walk;                                // over TCP: to the next byte
        Clock::time_point heard;                     // over TCP: the last bytes
        std::shared_ptr<const Segment> memory = {};  // or they lie here
        std::size_t next = 0;                        // the row that is copied next
    };
    struct Peer {
        Connection line;
        std::unique_ptr<Landing> landing = {};  // its chunks are put there; null: they come through the stream
        Index landed = 0;                       // chunks
        bool is_lost = false;
        std::vector<Row> rows = {};
        std::vector<Index> offsets = {};                          // of its tiles in a version's memory
        std::vector<std::shared_ptr<const Segment>> mapped = {};  // the last ones: versions take turns in them
        std::shared_ptr<const Segment> memory = {};               // of the version that was granted last; may be null
        Index version = 0;                                        // in `memory`
        std::optional<Taking> taking = {};
        Index wanted = 0;         // the generation that is asked for; 0: none
        Index fetched = 0;        // the last generation of fetch()
        bool is_granted = false;  // its grant was returned, and fetch() was not called yet
    };
    void plan(Index rank);
    [[nodiscard]] Result<void> send_rows(Clock::time_point end);
    [[nodiscard]] static std::optional<std::string_view> bytes_with(const Peer& peer, const Arrival& arrival);
    static void give_back(Peer& peer);
    [[nodiscard]] Result<std::string> make_landing(Peer& peer) const;
    [[nodiscard]] std::optional<News> local_news(std::size_t rank);
    [[nodiscard]] std::optional<News> remote_news(std::size_t rank);
    [[nodiscard]] News lose(std::size_t rank, const std::string& why);
    [[nodiscard]] Result<Message> granted(Peer& peer, Arrival arrival) const;
    [[nodiscard]] static Result<void> map(Peer& peer, Descriptor memory, Index bytes);
    [[nodiscard]] Index wanted_of(const Row& row) const;
    void land(Taking& taking, std::string_view bytes);
    void begin(Index generation);
    [[nodiscard]] News end(std::size_t rank);

    std::chrono::milliseconds lease_{};
    std::unique_ptr<Puts> puts_;  // null: all chunks come through streams
    std::vector<Peer> peers_;
    std::unique_ptr<const WantedMoves> moves_;
    Store store_ = Store::cached;      // of copies in shared memory
    std::vector<Index> wanted_bytes_;  // of each wanted tensor, that come to this rank
    std::vector<Index> missing_;
    Index generation_ = 0;     // of `missing_` and `part_`
    std::uint64_t part_ = 0;   // of the digest, from ranks whose rows have all come
    std::vector<News> ended_;  // for next()
};

}  // namespace reshard::live
