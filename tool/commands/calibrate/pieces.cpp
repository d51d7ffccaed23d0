#include "tool/commands/calibrate/pieces.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include "report/numbers.hpp"
#include "reshard/execute.hpp"
#include "src/base/try.hpp"

namespace reshard::cli {
namespace {

constexpr Index rows = 64;          // of a rank's part
constexpr Index columns = 1 << 12;  // 1 MiB of f32 from every rank
constexpr Index pieces = 16;
constexpr double slice_seconds = 0.0005;  // between two looks at the transport

double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Arithmetic on as much memory as the second cache holds. A transfer shares that cache.
class Arithmetic {
public:
    void run(Index times) {
        for (Index i = 0; i < times; ++i) {
            for (float& value : values_) value = value * 0.999F + 0.5F;
        }
    }
    // So many of these take a slice. The slice is short, so the fastest of some tries is what it takes by itself.
    [[nodiscard]] Index times_in_a_slice() {
        double least = 1;
        for (int i = 0; i < 20; ++i) {
            const double begin = seconds_now();
            run(4);
            least = std::min(least, (seconds_now() - begin) / 4);
        }
        return std::max<Index>(static_cast<Index>(slice_seconds / std::max(least, 1e-9)), 1);
    }

private:
    std::vector<float> values_ = std::vector<float>(std::size_t{1} << 16, 1.0F);
};

// A gather of every rank's rows by all ranks.
class Gather {
public:
    [[nodiscard]] static Result<Gather> make(Rank& rank, const Execution& execution) {
        const Mesh mesh{{"rank", rank.size()}};
        RESHARD_TRY(const auto& source, make_layout(mesh, DType::f32, {rows * rank.size(), columns}, P{"rank", {}}));
        RESHARD_TRY(const auto& target, make_layout(mesh, DType::f32, {rows * rank.size(), columns}, P{{}, {}}));
        RESHARD_TRY(auto& executor,
                    agree(rank, Executor::prepare(judge({source, target, {{StepKind::all_gather, target}}}, execution),
                                                  rank.backend())));
        Gather gather(std::move(executor), rank.size());
        RESHARD_ASSIGN(gather.bound_, gather.executor_.bind({std::as_bytes(std::span(gather.mine_)),
                                                             std::as_writable_bytes(std::span(gather.all_)),
                                                             {}}));
        return gather;
    }

    struct Seconds {
        double whole = std::numeric_limits<double>::infinity();
        double cut = std::numeric_limits<double>::infinity();
    };
    /// Collective: the least seconds of each in some rounds, of the slowest rank. Both run in each round, since a link
    /// can change from one second to the next.
    [[nodiscard]] static Result<Seconds> seconds(Rank& rank, Gather& whole, Gather& cut, Index rounds) {
        Seconds least;
        for (Index round = 0; round <= rounds; ++round) {
            RESHARD_TRY(const auto& in_whole, whole.once(rank));
            RESHARD_TRY(const auto& in_pieces, cut.once(rank));
            if (round == 0) continue;  // the first one warms up
            least.whole = std::min(least.whole, in_whole);
            least.cut = std::min(least.cut, in_pieces);
        }
        const std::vector<double> slowest = largest(rank, std::vector<double>{least.whole, least.cut});
        return Seconds{slowest[0], slowest[1]};
    }

    /// Collective: median seconds of so many slices of arithmetic of the slowest rank, beside a transfer or not.
    [[nodiscard]] Result<double> work_seconds(Rank& rank, Index rounds, Index slices, Index times, bool beside) {
        Arithmetic work;
        std::vector<double> taken;
        for (Index round = 0; round < rounds; ++round) {
            rank.barrier();
            std::unique_ptr<Ticket> ticket;
            if (beside) {
                RESHARD_ASSIGN(ticket, bound_->start());
            }
            const double begin = seconds_now();
            for (Index slice = 0; slice < slices; ++slice) {
                work.run(times);
                if (ticket != nullptr) RESHARD_CHECK(ticket->arrived());
            }
            taken.push_back(seconds_now() - begin);
            if (ticket != nullptr) RESHARD_CHECK(ticket->wait());
        }
        return largest(rank, std::vector<double>{median(std::move(taken))}).front();
    }

private:
    // Collective: this rank's seconds of one run.
    [[nodiscard]] Result<double> once(Rank& rank) {
        rank.barrier();
        const double begin = seconds_now();
        RESHARD_TRY(auto& ticket, bound_->start());
        RESHARD_CHECK(ticket->wait());
        return seconds_now() - begin;
    }

    Gather(Executor executor, Index ranks)
        : executor_(std::move(executor)),
          mine_(static_cast<std::size_t>(rows * columns), 1.0F),
          all_(static_cast<std::size_t>(rows * columns * ranks)) {}

    Executor executor_;
    std::vector<float> mine_;
    std::vector<float> all_;
    std::unique_ptr<Bound> bound_;
};

}  // namespace

Result<void> measure_pieces(Rank& rank, Index rounds, Machine& machine) {
    RESHARD_TRY(auto& whole, Gather::make(rank, AsSteps{}));
    Split split = even_split(0, rows, rows / pieces);
    split.overlapped = true;
    RESHARD_TRY(auto& cut, Gather::make(rank, split));
    RESHARD_TRY(const auto& seconds, Gather::seconds(rank, whole, cut, rounds));
    const Level& level = machine.levels.back();
    const Index messages = rank.size() - 1;
    const auto latency = static_cast<double>(level.start_ps + level.latency_ps * messages);
    const double more = (seconds.cut - seconds.whole) * second_ps / static_cast<double>(pieces - 1) - latency;
    machine.piece_ps = std::max<Index>(static_cast<Index>(more), 0);

    // Half as long as the transfer, so that all of it runs beside one.
    const Index times = Arithmetic().times_in_a_slice();
    const Index slices = std::max<Index>(static_cast<Index>(seconds.cut / 2 / slice_seconds), 1);
    RESHARD_TRY(const auto& alone, cut.work_seconds(rank, rounds, slices, times, false));
    RESHARD_TRY(const auto& beside, cut.work_seconds(rank, rounds, slices, times, true));
    machine.slowed_percent = std::max<Index>(static_cast<Index>(100 * beside / alone + 0.5), 100);
    return {};
}

}  // namespace reshard::cli
