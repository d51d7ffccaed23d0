#include "overlap/product_bench.hpp"

#include <array>
#include <memory>

#include "overlap/rings.hpp"
#include "overlap/work.hpp"

namespace reshard::overlap {
namespace {

constexpr std::array<Index, 11> equal_pieces = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48};
// Longer messages take turns over TCP (bench/README.md).
constexpr Index short_elements = (60 << 10) / 4;

// One problem on this rank: its arrays, its product, and a run for each way to cut.
class Bench {
public:
    Bench(const ProductProblem& problem, const Machine& machine, Backend& backend)
        : problem_(problem), machine_(machine), backend_(backend), ranks_(backend.size()) {
        const Mesh mesh{{"rank", ranks_}};
        const std::vector<Index> shape = {problem.rows * ranks_, problem.width};
        source_ = must(
            parse_layout(mesh, problem.scatter ? layout_text(shape, "", "{U:rank}") : layout_text(shape, "@rank", "")));
        target_ = must(parse_layout(mesh, layout_text(shape, problem.scatter ? "@rank" : "", "")));
        plan_ = Plan{source_, target_, {{problem.scatter ? StepKind::reduce_scatter : StepKind::all_gather, target_}}};
        const Index first = backend.rank() * problem.rows * problem.width;
        sent_.resize(tile_count(source_, backend.rank()));
        for (std::size_t i = 0; i < sent_.size(); ++i) sent_[i] = gathered(first + static_cast<Index>(i));
        received_.resize(tile_count(target_, backend.rank()));
    }

    nlohmann::json run(int rounds) {
        std::map<std::string, std::unique_ptr<Way>> ways;
        ways["serial"] = std::make_unique<Way>(*this, std::nullopt);
        const double transfer = measure_transfer(*ways["serial"], rounds);
        size_product(transfer);
        const PieceChoice choice = choose();
        for (const Index pieces : equal_pieces) {
            if (pieces <= problem_.rows)
                ways["equal " + std::to_string(pieces)] = std::make_unique<Way>(*this, equal(pieces));
        }
        // A rank's own part comes first, even in a single piece.
        ways["chosen"] = std::make_unique<Way>(*this, choice.split.value_or(equal(1)));
        RoundTimes times;
        RoundTimes transfers;
        for (int round = 0; round <= rounds; ++round) {
            for (auto& [name, way] : ways) {
                race(times, round, name, [&] { way->split ? overlapped(*way) : serial(*way); });
                count_wrong_products();
            }
            // A second serial one measures the noise.
            race(times, round, "serial again", [&] { serial(*ways["serial"]); });
            count_wrong_products();
            for (const auto& [name, elements] :
                 {std::pair{"ring", shard()}, std::pair{"ring, short", short_elements}}) {
                race(times, round, name, [&] { ring(elements, true); });
                count_wrong_products();
                race_transfer(transfers, round, name, [&] { ring(elements, false); });
            }
            race_transfer(transfers, round, "plan", [&] { must(ways["serial"]->bound->start().value()->wait()); });
        }
        return {{"work", problem_.scatter ? "product, scatter" : "gather, product"},
                {"ranks", ranks_},
                {"rows", problem_.rows},
                {"width", problem_.width},
                {"ratio", problem_.ratio},
                {"transfer_seconds", transfer},
                {"product_seconds", row_seconds_ * static_cast<double>(problem_.rows * ranks_)},
                {"predicted_seconds", static_cast<double>(choice.picoseconds) / 1e12},
                {"predicted_serial_seconds", static_cast<double>(choice.serial_picoseconds) / 1e12},
                {"ends", choice.split ? choice.split->ends : std::vector<Index>{problem_.rows}},
                {"seconds", medians(times)},
                {"transfers", medians(transfers)},
                {"wrong", wrong_}};
    }

private:
    struct Way {
        std::optional<Split> split;
        Executor executor;
        std::unique_ptr<Bound> bound;
        Way(Bench& bench, std::optional<Split> cut)
            : split(std::move(cut)),
              executor(must(Executor::prepare(judge(bench.plan_, split ? Execution(*split) : Execution(AsSteps{})),
                                              bench.backend_))),
              bound(must(executor.bind(
                  {std::as_bytes(std::span(bench.sent_)), std::as_writable_bytes(std::span(bench.received_)), {}}))) {}
    };

    // Small integers, so that every sum of products is exact.
    static float gathered(Index element) { return static_cast<float>(element % 11) - 5; }

    [[nodiscard]] Index shard() const { return problem_.rows * problem_.width; }

    [[nodiscard]] Split equal(Index pieces) const { return even_pieces(0, problem_.rows, pieces); }

    double measure_transfer(Way& serial_way, int rounds) {
        RoundTimes times;
        for (int round = 0; round <= rounds; ++round)
            race(times, round, "plan", [&] { must(serial_way.bound->start().value()->wait()); });
        return median(times["plan"]);
    }

    // The time of a slice of every block that waits for its piece, by the slice's rows; the same on all ranks.
    [[nodiscard]] WorkTimes piece_seconds() {
        WorkTimes times = measure_work(problem_.rows, [&](Index begin, Index end) { compute(begin, end, [] {}); });
        for (double& seconds : times.seconds) seconds = largest(seconds);
        return times;
    }

    // As many columns, or as long sums, as take the ratio of the transfer; few of a core that sleeps.
    void size_product(double transfer) {
        const Index rows = problem_.rows * ranks_;
        const double wanted = problem_.ratio * transfer;
        if (problem_.asleep) {
            make_product(4);
            row_seconds_ = wanted / static_cast<double>(rows);
            product_->take(row_seconds_);
        } else {
            size_until(wanted, [&](Index size) {
                make_product(size);
                return row_seconds_ * static_cast<double>(rows);
            });
        }
        make_right();
    }

    void make_product(Index size) {
        const Index rows = problem_.rows * ranks_;
        const Index inner = problem_.scatter ? size : problem_.width;
        const Index columns = problem_.scatter ? problem_.width : size;
        product_ = std::make_unique<Product>(rows, inner, columns);
        if (problem_.scatter) {
            made_from_.resize(static_cast<std::size_t>(rows * inner));
            for (std::size_t i = 0; i < made_from_.size(); ++i)
                made_from_[i] = static_cast<float>((static_cast<Index>(i) + backend_.rank()) % 5) - 2;
        } else {
            made_.assign(static_cast<std::size_t>(rows * columns), 0.0F);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        row_seconds_ = largest(product_->measure(used(), made()));
    }

    // The right result of each way, from arrays that every rank makes by itself.
    void make_right() {
        const Index rows = problem_.rows * ranks_;
        if (!problem_.scatter) {
            right_transfer_.resize(received_.size());
            for (std::size_t i = 0; i < right_transfer_.size(); ++i)
                right_transfer_[i] = gathered(static_cast<Index>(i));
            right_.assign(made_.size(), 0.0F);
            product_->run(right_transfer_.data(), right_.data(), 0, rows, [] {});
            return;
        }
        product_->run(used(), made(), 0, rows, [] {});
        summands_ = sent_;
        std::vector<float> all(sent_.size());
        MPI_Allreduce(sent_.data(), all.data(), static_cast<int>(all.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        const auto begin = all.begin() + backend_.rank() * shard();
        right_.assign(begin, begin + shard());
        right_transfer_ = right_;
    }

    [[nodiscard]] PieceChoice choose() {
        MPI_Barrier(MPI_COMM_WORLD);
        PieceWork work;
        work.dim = 0;
        work.block = problem_.rows;
        work.makes_source = problem_.scatter;
        const WorkTimes seconds = piece_seconds();
        work.seconds = seconds;
        if (!problem_.scatter) work.seconds_before = seconds(0, problem_.rows) / static_cast<double>(ranks_ - 1);
        return must(choose_pieces(must(judge(plan_, AsSteps{})), machine_, work));
    }

    [[nodiscard]] const float* used() const { return problem_.scatter ? made_from_.data() : received_.data(); }
    [[nodiscard]] float* made() { return problem_.scatter ? sent_.data() : made_.data(); }

    // Visits these rows of every block, except the own block if its rows are there from the start.
    void compute(Index begin, Index end, const std::function<void()>& look) {
        for (Index block = 0; block < ranks_; ++block) {
            const Index first = block * problem_.rows;
            if (problem_.scatter || block != backend_.rank())
                product_->run(used(), made(), first + begin, first + end, look);
        }
    }
    void compute_own(const std::function<void()>& look) {
        const Index first = backend_.rank() * problem_.rows;
        product_->run(sent_.data(), made() + first * product_->columns(), 0, problem_.rows, look);
    }

    void serial(Way& way) {
        const Index rows = problem_.rows * ranks_;
        if (problem_.scatter) product_->run(used(), made(), 0, rows, [] {});
        must(way.bound->start().value()->wait());
        if (!problem_.scatter) product_->run(used(), made(), 0, rows, [] {});
    }

    void overlapped(Way& way) {
        const Split& split = *way.split;
        const auto ticket = way.bound->start({.offers_withheld = problem_.scatter}).value();
        const auto look = [&] { static_cast<void>(ticket->arrived().value()); };
        if (!problem_.scatter) compute_own(look);
        for (std::size_t place = 0; place < split.ends.size(); ++place) {
            const std::size_t piece = piece_at(split, place);
            if (!problem_.scatter) must(until_arrived(*ticket, place));
            compute(piece == 0 ? 0 : split.ends[piece - 1], split.ends[piece], look);
            if (problem_.scatter) must(ticket->offer(piece));
        }
        must(ticket->wait());
    }

    // Collective matmul, or its transfer alone.
    void ring(Index elements, bool with_product) {
        const auto work = [&](Index block, const std::function<void()>& look) {
            if (with_product) product_->run(used(), made(), block * problem_.rows, (block + 1) * problem_.rows, look);
        };
        if (problem_.scatter) return ring_scatter(sent_.data(), received_.data(), shard(), elements, work);
        std::ranges::copy(sent_, received_.begin() + backend_.rank() * shard());
        ring_gather(received_.data(), shard(), elements, work);
    }

    void count_wrong_products() {
        wrong_ += sum_of(count_wrong(problem_.scatter ? received_ : made_, right_));
        std::ranges::fill(received_, -1.0F);
        std::ranges::fill(made_, -1.0F);
        if (problem_.scatter) std::ranges::fill(sent_, -1.0F);
    }

    // A run whose sources are made already.
    void race_transfer(RoundTimes& times, int round, const std::string& name, const std::function<void()>& body) {
        if (problem_.scatter) sent_ = summands_;
        race(times, round, name, body);
        count_wrong_transfers();
    }

    void count_wrong_transfers() {
        wrong_ += sum_of(count_wrong(received_, right_transfer_));
        std::ranges::fill(received_, -1.0F);
    }

    ProductProblem problem_;
    const Machine& machine_;
    Backend& backend_;
    Index ranks_;
    Layout source_;
    Layout target_;
    Plan plan_;
    std::vector<float> sent_;
    std::vector<float> received_;
    std::vector<float> made_from_;  // of a scatter: what the product reads
    std::vector<float> made_;       // of a gather: what it writes
    std::vector<float> summands_;   // of a scatter: what it makes of that
    std::vector<float> right_;
    std::vector<float> right_transfer_;  // in received_
    std::unique_ptr<Product> product_;
    double row_seconds_ = 0;
    Index wrong_ = 0;
};

}  // namespace

nlohmann::json measure(const ProductProblem& problem, const Machine& machine, Backend& backend, int rounds) {
    return Bench(problem, machine, backend).run(rounds);
}

}  // namespace reshard::overlap
