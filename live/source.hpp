// A publisher as one rank of a subscriber sees it: connections, the rows that this rank takes, the memory of versions.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "live/meeting.hpp"
#include "live/protocol/message.hpp"
#include "live/row_walk.hpp"
#include "live/transport/segment.hpp"
#include "reshard/model/rows.hpp"

namespace reshard::live {

class Source {
public:
    /// Connects to every rank of the publisher, and works out the rows: at `endpoint`.0, ... if it is a path, else
    /// where rank 0 says. A rank that sends nothing of a version for `lease` is lost. Errors: mismatch (a tensor that
    /// is not there, or has another shape; ranks of different publishers); unsupported (another type that cannot be
    /// cast); as RowSchedule::make; backend.
    [[nodiscard]] static Result<Source> connect(const std::string& endpoint, std::span<const NamedTensor> wanted,
                                                Index rank, std::chrono::milliseconds lease, Clock::time_point end);

    [[nodiscard]] std::size_t rank_count() const { return peers_.size(); }
    [[nodiscard]] bool checks_bytes() const { return checks_bytes_; }
    [[nodiscard]] Index array(std::size_t tensor) const { return arrays_[tensor]; }  ///< its number at the publisher
    /// The element type in which the publisher sends each wanted tensor.
    [[nodiscard]] std::vector<DType> sent_dtypes() const;

    /// Bytes of each wanted tensor that come to this rank, and those that have not come yet in the last generation of
    /// fetch().
    [[nodiscard]] const std::vector<Index>& bytes() const { return wanted_bytes_; }
    [[nodiscard]] const std::vector<Index>& missing() const { return missing_; }
    [[nodiscard]] Index generation() const { return generation_; }  ///< of the last fetch(); 0: none

    /// A message of a rank of the publisher, the generation whose rows have all come from it, or why it is lost.
    struct News {
        std::size_t rank = 0;
        std::optional<Message> message = {};
        Index fetched = 0;        // a generation: its rows have come, or come no more if the rank is lost
        std::string reason = {};  // the rank is lost
    };
    [[nodiscard]] std::optional<News> next();  ///< nullopt: nothing has come
    void wait(Clock::time_point end) const;    ///< until something may have come
    void send(std::size_t rank, const Message& message);

    /// Takes the rows of a granted version from one rank of the publisher. pre: the grant was returned by next().
    /// `tiles` has the memory of each wanted tensor and must outlive the fetch. Returns true if all rows are there. If
    /// not, next() tells when they are. Errors: backend.
    [[nodiscard]] Result<bool> fetch(std::size_t rank, const Fetch& fetch, std::span<const std::span<std::byte>> tiles);

private:
    /// The rows of a generation that come over TCP.
    struct Landing {
        Index generation = 0;
        RowWalk walk;
        std::span<const std::span<std::byte>> tiles;
        Clock::time_point heard;  // the last bytes
    };
    struct Peer {
        Connection line;
        bool is_lost = false;
        std::vector<Row> rows = {};
        std::vector<Index> offsets = {};                          // of its tiles in a version's memory
        std::vector<std::shared_ptr<const Segment>> mapped = {};  // the last ones: versions take turns in them
        std::shared_ptr<const Segment> memory = {};               // of the version that was granted last; may be null
        Index version = 0;                                        // in `memory`
        std::optional<Landing> landing = {};
        Index wanted = 0;         // the generation that is asked for; 0: none
        Index fetched = 0;        // the last generation of fetch()
        bool is_granted = false;  // its grant was returned, and fetch() was not called yet
    };
    [[nodiscard]] Result<void> plan(std::span<const NamedTensor> wanted, Index rank);
    [[nodiscard]] Result<void> send_rows(Clock::time_point end);
    [[nodiscard]] std::optional<News> local_news(std::size_t rank);
    [[nodiscard]] std::optional<News> remote_news(std::size_t rank);
    [[nodiscard]] News lose(std::size_t rank, const std::string& why);
    [[nodiscard]] Result<Message> granted(Peer& peer, Arrival arrival) const;
    [[nodiscard]] static Result<void> map(Peer& peer, Descriptor memory, Index bytes);
    [[nodiscard]] std::uint64_t content_of(const std::byte* digests) const;
    void land(Landing& landing, std::string_view bytes);
    void begin(Index generation);

    std::chrono::milliseconds lease_{};
    std::vector<Peer> peers_;
    std::vector<NamedTensor> tensors_;  // of the publisher
    std::vector<Index> arrays_;         // of each wanted tensor, the index into tensors_
    std::vector<Index> wanted_bytes_;   // of each wanted tensor, on this rank
    std::vector<Index> missing_;
    Index generation_ = 0;  // of `missing_`
    bool checks_bytes_ = false;
};

}  // namespace reshard::live
