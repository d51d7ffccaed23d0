// Small messages that no call waits for. They say which call a rank has reached, and that it failed or left. They
// travel on a communicator that is never freed. So no later backend with the same number takes a late message for its
// own.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "backends/mpi/base/handles.hpp"

namespace reshard::mpi {

enum class Word : std::int32_t {
    arrived,   ///< at a call, to rank 0
    here,      ///< so is rank 0, and it waits for others
    verdict,   ///< of rank 0, on a call
    withdrew,  ///< from a call: to rank 0, which did not come in time; to all, when interrupted
    gone,      ///< dropped its backend
    failed,    ///< an executor, from a run on
    dropped,   ///< an executor
    excused,   ///< could not bind or start
    started,   ///< a run, after an excuse
    waiting    ///< in a run, already long
};

/// Plain bytes.
struct Letter {
    Word word = Word::arrived;
    std::int32_t rank = 0;      ///< the writer
    std::uint64_t backend = 0;  ///< the same on all ranks
    std::uint64_t number = 0;   ///< of the call, or of the call that prepared the executor
    std::uint64_t value = 0;  ///< of a call its fingerprint, or 1 where none follows; of an executor the runs that were
                              ///< begun, or the first that fails
    std::int32_t call = 0;    ///< which kind
    std::int32_t code = 0;    ///< of a verdict, and of a rank that has come: its failure's, or below 0
    std::array<char, 424> text{};

    [[nodiscard]] std::string_view message() const { return text.data(); }
    void write(std::string_view message);
    /// A value, or a failure: its code and as much of its message as fits.
    [[nodiscard]] Result<std::uint64_t> brought() const;
    void write(const Result<std::uint64_t>& brought);
};

/// A letter, and the data that came with it.
struct Mail {
    Letter letter;
    std::vector<std::byte> data;
};

/// The backend's and the call's number that prepared it.
using ExecutorKey = std::pair<std::uint64_t, std::uint64_t>;

/// The remains of a dropped executor. Its communicators are freed when every peer has dropped it too, after the same
/// number of runs, all without failure. Then no message travels on them any more.
struct Estate {
    std::vector<Communicator> communicators;
    std::vector<int> peers;
    std::uint64_t runs = 0;
    bool well = true;
};

/// All letters between the ranks of one group. Safe to use from several threads where MPI is.
class Post {
public:
    using Clock = std::chrono::steady_clock;

    /// Collective over a communicator of the library's own; the same for all backends of the same ranks.
    [[nodiscard]] static Result<std::shared_ptr<Post>> of(MPI_Comm communicator);

    explicit Post(Communicator communicator) : communicator_(std::move(communicator)) {}

    [[nodiscard]] std::uint64_t next_backend();
    void close_backend(std::uint64_t backend);  ///< letters to it are thrown away from now on

    /// The most data that may go with a letter. MPI sends so much at once, also in a node, so that a letter is received
    /// even if its sender calls MPI no more.
    static constexpr Index data_bytes_max = 3584;

    /// Does not block. Copies the data.
    void send(int to, const Letter& letter, std::span<const std::byte> data = {});

    /// How often a call looks for letters that have arrived. A look is a system call over some networks. So a rank that
    /// waits for no letter looks seldom: once in a millisecond.
    enum class Look { always, seldom };

    /// The letters of a backend's calls, in the order of arrival. Receives `most` letters at most: a rank that has all
    /// of them does not look for more.
    [[nodiscard]] std::vector<Mail> calls(std::uint64_t backend, Look look, std::size_t most);

    struct Notice {
        Letter letter;
        Clock::time_point heard;
    };
    /// The last that each peer said of an executor, by rank.
    [[nodiscard]] std::map<int, Notice> notices(const ExecutorKey& key, Look look = Look::always);
    void open_executor(const ExecutorKey& key);
    void close_executor(const ExecutorKey& key, Estate estate);

private:
    struct Executor {
        std::map<int, Notice> notices;
        std::optional<Estate> estate;
    };
    // pre of all: the mutex is held.
    void poll(Look look = Look::always, std::size_t most = std::numeric_limits<std::size_t>::max());
    void take(Mail mail);
    void free_estates();

    std::mutex mutex_;
    Communicator communicator_;
    std::uint64_t backends_ = 0;
    Clock::time_point looked_;                          // seldom
    std::set<std::uint64_t> closed_;                    // backends
    std::map<std::uint64_t, std::vector<Mail>> calls_;  // by backend
    std::map<std::uint64_t, std::uint64_t> opened_;     // by backend, the last executor
    std::map<ExecutorKey, Executor> executors_;         // open, to be opened, or with an estate
    std::vector<std::pair<MPI_Request, std::vector<std::byte>>> sent_;
};

}  // namespace reshard::mpi
