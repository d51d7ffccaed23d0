// The meeting place of the ranks of one node; it needs no messages.
#pragma once

#include <chrono>
#include <optional>

#include "backends/mpi/base/post.hpp"

namespace reshard::mpi {

/// The meeting that a rank has come to, and its value there.
struct Presence {
    std::uint64_t meeting = 0;  ///< its number; 0: none
    std::uint64_t value = 0;
    friend bool operator==(const Presence&, const Presence&) = default;
};

/// Messages of a run that also say that their sender has come to a meeting.
class Carrier {
public:
    virtual ~Carrier() = default;
    /// Sends the messages. pre: this rank has come to the board.
    virtual void send(const Presence& own) = 0;
    /// True once messages of all other ranks have come, with the same presence. Waits for `most` at most, and not long:
    /// a rank that does not agree sends none.
    [[nodiscard]] virtual bool all_have(const Presence& own, std::chrono::microseconds most) = 0;
};

/// Meetings of ranks that share memory. Meetings are numbered, and each rank comes to them in order. A rank that cannot
/// wait closes the board in the name of a rank that has not come, which then cannot come. So a meeting is complete for
/// all ranks or for none. From then on the ranks meet by letters, until all have met so once.
class Board {
public:
    Board() = default;
    Board(const Board&) = delete;
    Board& operator=(const Board&) = delete;
    virtual ~Board() = default;

    /// This rank comes to the meeting `own.number`. False if the board is closed.
    [[nodiscard]] virtual bool come(const Letter& own) = 0;
    [[nodiscard]] virtual bool has_come(int rank, std::uint64_t number) const = 0;

    /// True once all ranks have come to the meeting. Waits for about `most`. pre: this rank has come.
    [[nodiscard]] virtual bool all_come(std::uint64_t number, std::chrono::microseconds most) = 0;
    /// True if all ranks came to the same call with the value of `own`. pre: all have come.
    [[nodiscard]] virtual bool agrees(const Letter& own) const = 0;
    /// The letter that a rank brought. pre: all have come.
    [[nodiscard]] virtual const Letter& letter_of(int rank, std::uint64_t number) const = 0;

    [[nodiscard]] virtual bool is_open() const = 0;
    /// Returns false, and does nothing, if the meeting is complete.
    [[nodiscard]] virtual bool close(std::uint64_t number) = 0;
    /// Opens the board for the meetings after `number`. pre: all ranks wait for rank 0, which calls this.
    virtual void open_after(std::uint64_t number) = 0;
};

}  // namespace reshard::mpi
