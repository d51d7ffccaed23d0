// Real processes that are killed or stopped at random moments: a publisher of 2 ranks and a subscriber of 3. Every
// survivor must end with an error that names the victim, hold one whole version, and the publisher must serve on.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "live/transport/puts.hpp"
#include "reshard/live/publish.hpp"
#include "reshard/live/subscribe.hpp"
#include "reshard/text.hpp"
#include "support/property.hpp"

namespace reshard::live {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::minutes;

constexpr Index publishers = 2;
constexpr Index subscribers = 3;
constexpr auto hang = minutes(2);  // far above any wait that is right, on any machine

// A process of its own that reports lines.
class Child {
public:
    explicit Child(const std::function<void(const std::function<void(const std::string&)>&)>& body) {
        int ends[2] = {-1, -1};
        if (pipe(ends) != 0) std::abort();
        process_ = fork();
        if (process_ == 0) {
            close(ends[0]);
            alarm(600);  // nothing outlives its test by long
            signal(SIGPIPE, SIG_DFL);
            try {
                // A commit is not worth a wait: a full pipe would stop the publisher until its parent reads.
                body([&](const std::string& line) {
                    pollfd room{ends[1], POLLOUT, 0};
                    if (line[0] == 'C' && poll(&room, 1, 0) == 0) return;
                    if (write(ends[1], (line + "\n").data(), line.size() + 1) < 0) _exit(1);
                });
            } catch (...) {  // GoogleTest would go on in this process
                _exit(2);
            }
            _exit(0);
        }
        close(ends[1]);
        end_ = ends[0];
    }
    Child(const Child&) = delete;
    Child(Child&& other) noexcept : process_(std::exchange(other.process_, -1)), end_(std::exchange(other.end_, -1)) {}
    ~Child() {
        if (process_ < 0) return;
        send(SIGKILL);
        waitpid(process_, nullptr, 0);
        close(end_);
    }
    void send(int number) const { kill(process_, number); }

    // The segments of shared memory that the process holds.
    int segments() const {
        int count = 0;
        std::error_code gone;
        for (const auto& one : std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", process_), gone))
            if (std::filesystem::read_symlink(one, gone).string().find("reshard-live") != std::string::npos) ++count;
        return count;
    }

    // The next line that begins with `kind`; those before it are dropped. Empty: the process has ended, or hangs.
    std::string next(char kind) {
        const std::string line = next_of(std::string(1, kind));
        return line.empty() ? line : line.substr(1);
    }
    // The same for one of several kinds, which the line begins with.
    std::string next_of(const std::string& kinds) {
        const auto until = Clock::now() + hang;
        while (true) {
            const auto stop = text_.find('\n');
            if (stop != std::string::npos) {
                const std::string line = text_.substr(0, stop);
                text_.erase(0, stop + 1);
                if (kinds.find(line[0]) != std::string::npos) return line;
                if (line[0] == 'W') ADD_FAILURE() << line;
                continue;
            }
            pollfd one{end_, POLLIN, 0};
            char bytes[4096];
            const auto left = std::chrono::duration_cast<milliseconds>(until - Clock::now()).count();
            if (left <= 0 || poll(&one, 1, static_cast<int>(left)) <= 0) return "";
            const auto came = read(end_, bytes, sizeof bytes);
            if (came <= 0) return "";
            text_.append(bytes, static_cast<std::size_t>(came));
        }
    }

    // Drops the lines that are there up to an error, so that next() returns a later one.
    void drop_lines() {
        pollfd one{end_, POLLIN, 0};
        char bytes[4096];
        text_.insert(0, "\n");
        while (poll(&one, 1, 0) > 0) {
            const auto came = read(end_, bytes, sizeof bytes);
            if (came <= 0) break;
            text_.append(bytes, static_cast<std::size_t>(came));
        }
        const auto error = text_.find("\nE");
        const auto line = error != std::string::npos ? error : text_.rfind('\n');  // the last one may be cut
        text_.erase(0, line + 1);
    }

private:
    pid_t process_ = -1;
    int end_ = -1;
    std::string text_;
};

const Layout& source() {
    static const Layout layout = parse_layout(parse_mesh("x=2").value(), "i64[600@x,40]").value();
    return layout;
}
const Layout& target() {
    static const Layout layout = parse_layout(parse_mesh("x=3").value(), "i64[600,40@x]").value();
    return layout;
}

// Every element of version v is v, so that a mixed tile shows. Commits until an error, then stays connected.
void publish(const std::string& folder, const std::string& endpoint, Index rank, const PublishOptions& options,
             const std::function<void(const std::string&)>& say) {
    auto joined = join_group(folder + "/trainer", rank, publishers);
    if (!joined) return say("W: " + joined.error().message);
    auto& group = *joined;
    std::vector<std::int64_t> tile(tile_count(source(), rank));
    auto out = Publisher::open(*group, endpoint,
                               std::vector<PublishedTensor>{{"w", source(), std::as_bytes(std::span(tile))}}, options);
    if (!out) return say("E" + out.error().message);
    say("P" + out->endpoint());
    for (Index version = 1;; ++version) {
        std::ranges::fill(tile, version);
        if (const auto done = out->commit(version); !done) {
            say("E" + done.error().message);
            while (true) pause();
        }
        say(fmt::format("C{}", version));
    }
}

bool is_whole(const Subscriber& into) {
    const auto bytes = into.tile(0).value();
    const std::span values(reinterpret_cast<const std::int64_t*>(bytes.data()), bytes.size() / sizeof(std::int64_t));
    return std::ranges::all_of(values, [&](std::int64_t value) { return value == into.version(); });
}

// Takes versions until an error. Reports each version, and at the end the one that it still serves.
void subscribe(const std::string& folder, const std::string& endpoint, Index rank, const SubscribeOptions& options,
               const std::function<void(const std::string&)>& say) {
    auto joined = join_group(folder + "/engine", rank, subscribers);
    if (!joined) return say("W: " + joined.error().message);
    auto& group = *joined;
    auto into = Subscriber::connect(*group, endpoint, std::vector<WantedTensor>{{"w", target()}}, options);
    if (!into) return say("E" + into.error().message);
    Index last = 0;
    while (true) {
        const auto version = into->update(minutes(5));
        if (into->version() != 0 && !is_whole(*into)) say("W: a mixed version");
        if (into->version() != 0 && into->version() < last) say("W: a version went back");
        if (!version) {
            say("E" + version.error().message);
            say(fmt::format("S{}", into->version()));
            return;
        }
        last = *version;
        say(fmt::format("V{}", last));
    }
}

struct Fate {
    int signal = SIGKILL;
    milliseconds lease = minutes(5);   // beyond `hang`: closed connections must tell of a killed process
    std::string endpoint = "weights";  // in the folder of the session, or host:port
    Transport transport = Transport::automatic;
};

// One session with one victim. Returns the time from the signal to the last survivor's error.
milliseconds strike(std::mt19937_64& random, const Fate& fate) {
    const auto folder = (std::filesystem::temp_directory_path() / fmt::format("reshard-kill-{}", getpid())).string();
    std::filesystem::create_directories(folder);
    const bool tcp = fate.endpoint.find(':') != std::string::npos;
    const std::string asked = tcp ? fate.endpoint : folder + "/" + fate.endpoint;
    std::vector<Child> all;
    for (Index rank = 0; rank < publishers; ++rank)
        all.emplace_back([&, rank](const auto& say) {
            publish(folder, asked, rank, {.lease = fate.lease, .transport = fate.transport}, say);
        });
    const std::string endpoint = all[0].next('P');
    const SubscribeOptions options{.lease = fate.lease, .in_place = random() % 2 == 0};
    for (Index rank = 0; rank < subscribers; ++rank)
        all.emplace_back([&, rank](const auto& say) { subscribe(folder, endpoint, rank, options, say); });
    for (std::uint64_t versions = 1 + random() % 6; versions > 0; --versions) all.back().next('V');
    usleep(static_cast<useconds_t>(random() % 3000));

    const auto victim = static_cast<std::size_t>(random() % all.size());
    const bool publisher_dies = victim < publishers;
    all[victim].send(fate.signal);
    const auto start = Clock::now();
    const std::string lost = publisher_dies ? fmt::format("rank {} of the publisher is lost", victim)
                                            : fmt::format("rank {} of this job is lost", victim - publishers);
    std::vector<std::string> serving;
    for (std::size_t i = publishers; i < all.size(); ++i) {
        if (i == victim) continue;
        const std::string error = all[i].next('E');
        EXPECT_FALSE(error.empty()) << "rank " << i - publishers << " of the subscriber hangs or has died";
        if (fate.signal == SIGKILL) {
            EXPECT_NE(error.find(lost), std::string::npos) << "wanted: " << lost << "; got: " << error;
        }
        const std::string version = all[i].next('S');
        if (!version.empty() && version != "0") serving.push_back(version);
    }
    const auto took = std::chrono::duration_cast<milliseconds>(Clock::now() - start);
    for (const std::string& version : serving) EXPECT_EQ(version, serving[0]);
    for (std::size_t i = 0; i < publishers && !publisher_dies; ++i) {  // it goes on
        all[i].drop_lines();
        bool broken = false;  // the machine paused for longer than the lease of the publisher's own ranks
        for (int commits = 0; commits < 3 && !broken; ++commits) {
            const std::string line = all[i].next_of("CE");
            broken = fate.signal == SIGSTOP && line.starts_with('E') && line.find("has not voted") != std::string::npos;
            EXPECT_TRUE(broken || line.starts_with('C')) << "rank " << i << " of the publisher: " << line;
        }
        if (broken) continue;
        // The tensors' names, the newest version, the one before, the next, a spare one, and one of a stalled reader.
        EXPECT_GE(all[i].segments(), 2);
        EXPECT_LE(all[i].segments(), 6);
    }
    all.clear();
    std::filesystem::remove_all(folder);
    return took;
}

void strike_often(int times, const Fate& fate) {
    const auto seed = reshard::test::drawn_seed();
    std::mt19937_64 random(seed);
    milliseconds longest{0};
    int done = 0;
    for (; done < times && !::testing::Test::HasFailure(); ++done) longest = std::max(longest, strike(random, fate));
    std::cout << fmt::format(
        "{} sessions from RESHARD_SEED={}; the last survivor's error came at most {} ms after the signal\n", done, seed,
        longest.count());
}

TEST(Processes, Killed) { strike_often(reshard::test::long_run() ? 2000 : 20, {}); }

TEST(Processes, KilledOverTcp) { strike_often(reshard::test::long_run() ? 2000 : 10, {.endpoint = "127.0.0.1:0"}); }

// A lease that a busy machine does not break often. If it does, a survivor names another process, and nothing is mixed.
TEST(Processes, Stopped) {
    strike_often(reshard::test::long_run() ? 100 : 2, {.signal = SIGSTOP, .lease = milliseconds(1500)});
}
TEST(Processes, StoppedOverTcp) {
    strike_often(reshard::test::long_run() ? 100 : 2,
                 {.signal = SIGSTOP, .lease = milliseconds(1500), .endpoint = "127.0.0.1:0"});
}

TEST(Processes, KilledOverUcx) {
    if (const auto there = open_ucx(Devices::any); !there) GTEST_SKIP() << there.error().message;
    strike_often(reshard::test::long_run() ? 2000 : 10, {.endpoint = "127.0.0.1:0", .transport = Transport::ucx});
}
TEST(Processes, StoppedOverUcx) {
    if (const auto there = open_ucx(Devices::any); !there) GTEST_SKIP() << there.error().message;
    strike_often(
        reshard::test::long_run() ? 100 : 2,
        {.signal = SIGSTOP, .lease = milliseconds(1500), .endpoint = "127.0.0.1:0", .transport = Transport::ucx});
}

}  // namespace
}  // namespace reshard::live
