// A transfer and the product of matrices beside it, in several ways: one after the other, in a ring of shards, in equal
// pieces, and in the pieces that choose_pieces chooses. Run under mpirun; overlap.py makes the link and reads what is
// printed: one JSON line per problem.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "overlap/work.hpp"
#include "reshard/mpi.hpp"
#include "reshard/reshard.hpp"

namespace reshard::overlap {
namespace {

constexpr std::array<Index, 11> equal_pieces = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48};

struct Problem {
    bool scatter = false;  // the product makes what is added up and scattered; else it uses what is gathered
    Index rows = 0;        // of a rank
    Index width = 0;       // elements of a row that is transferred
    double ratio = 1;      // product / transfer, in time
};

double largest(double mine) {
    double all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

void must(const Result<void>& done) {
    if (done) return;
    std::cerr << describe(done.error()) << '\n';
    MPI_Abort(MPI_COMM_WORLD, 1);
}

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

// One problem on this rank: its arrays, its product, and a run for each way to cut.
class Bench {
public:
    Bench(const Problem& problem, const Machine& machine, Backend& backend)
        : problem_(problem), machine_(machine), backend_(backend), ranks_(backend.size()) {
        const Mesh mesh{{"rank", ranks_}};
        const std::vector<Index> shape = {problem.rows * ranks_, problem.width};
        source_ = problem.scatter ? parse_layout(mesh, text(shape, "", "{U:rank}")).value()
                                  : parse_layout(mesh, text(shape, "@rank", "")).value();
        target_ = parse_layout(mesh, text(shape, problem.scatter ? "@rank" : "", "")).value();
        const StepKind kind = problem.scatter ? StepKind::reduce_scatter : StepKind::all_gather;
        plan_ = Plan{source_, target_, {{kind, target_}}};
        sent_.resize(tile_count(source_, backend.rank()), static_cast<float>(backend.rank() + 1));
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
        ways["chosen"] = std::make_unique<Way>(*this, choice.split);
        std::map<std::string, std::vector<double>> times;
        Index wrong = 0;
        for (int round = 0; round <= rounds; ++round) {
            for (auto& [name, way] : ways) {
                const double seconds = timed([&] { way->split ? overlapped(*way) : serial(*way); });
                if (round > 0) times[name].push_back(seconds);
                wrong += wrong_elements();
            }
            // A second serial one tells the noise.
            const double again = timed([&] { serial(*ways["serial"]); });
            if (round > 0) times["serial again"].push_back(again);
            if (problem_.scatter) continue;
            const double seconds = timed([&] { ring(); });
            if (round > 0) times["ring"].push_back(seconds);
            wrong += wrong_elements();
        }
        nlohmann::json line{{"work", problem_.scatter ? "product, scatter" : "gather, product"},
                            {"ranks", ranks_},
                            {"rows", problem_.rows},
                            {"width", problem_.width},
                            {"ratio", problem_.ratio},
                            {"transfer_seconds", transfer},
                            {"product_seconds", row_seconds_ * static_cast<double>(problem_.rows * ranks_)},
                            {"predicted_seconds", static_cast<double>(choice.picoseconds) / 1e12},
                            {"predicted_serial_seconds", static_cast<double>(choice.serial_picoseconds) / 1e12},
                            {"ends", choice.split ? choice.split->ends : std::vector<Index>{problem_.rows}},
                            {"wrong", wrong}};
        for (const auto& [name, taken] : times) line["seconds"][name] = median(taken);
        return line;
    }

private:
    struct Way {
        std::optional<Split> split;
        Executor executor;
        std::unique_ptr<Bound> bound;
        Way(Bench& bench, std::optional<Split> cut)
            : split(std::move(cut)),
              executor(Executor::prepare(bench.plan_, split ? Execution(*split) : Execution(AsSteps{}), bench.backend_)
                           .value()),
              bound(executor
                        .bind({std::as_bytes(std::span(bench.sent_)),
                               std::as_writable_bytes(std::span(bench.received_)),
                               {}})
                        .value()) {}
    };

    static std::string text(const std::vector<Index>& shape, const char* cut, const char* sums) {
        std::ostringstream out;
        out << "f32[" << shape[0] << cut << "," << shape[1] << "]" << sums;
        return out.str();
    }

    [[nodiscard]] Split equal(Index pieces) const {
        Split split{0, problem_.rows, {}, {}, true};
        for (Index k = 1; k <= pieces; ++k) split.ends.push_back(problem_.rows * k / pieces);
        return split;
    }

    double measure_transfer(Way& serial_way, int rounds) {
        std::vector<double> times;
        for (int round = 0; round <= rounds; ++round) {
            const double seconds = timed([&] { must(serial_way.bound->start().value()->wait()); });
            if (round > 0) times.push_back(seconds);
        }
        return median(times);
    }

    // As many columns, or as long sums, as take the ratio of the transfer.
    void size_product(double transfer) {
        const Index rows = problem_.rows * ranks_;
        Index other = 16;
        for (int turn = 0; turn < 3; ++turn) {
            const Index inner = problem_.scatter ? other : problem_.width;
            const Index columns = problem_.scatter ? problem_.width : other;
            product_ = std::make_unique<Product>(rows, inner, columns);
            if (problem_.scatter) {
                made_from_.assign(static_cast<std::size_t>(rows * inner), 1.0F);
            } else {
                made_.assign(static_cast<std::size_t>(rows * columns), 0.0F);
            }
            row_seconds_ = largest(product_->measure(used(), made()));
            const double wanted = problem_.ratio * transfer / static_cast<double>(rows);
            if (turn < 2)
                other = std::max<Index>(static_cast<Index>(static_cast<double>(other) * wanted / row_seconds_), 1);
        }
        if (problem_.scatter) {
            product_->run(used(), made(), 0, rows, [] {});
        }
        serial_once();
        right_ = problem_.scatter ? received_ : made_;
    }

    void serial_once() {
        Way way(*this, std::nullopt);
        serial(way);
    }

    [[nodiscard]] PieceChoice choose() const {
        PieceWork work;
        work.dim = 0;
        work.block = problem_.rows;
        work.makes_source = problem_.scatter;
        work.seconds = [&](Index begin, Index end) {
            return row_seconds_ * static_cast<double>((end - begin) * ranks_);
        };
        return choose_pieces(judge(plan_, AsSteps{}).value(), machine_, work).value();
    }

    [[nodiscard]] const float* used() const { return problem_.scatter ? made_from_.data() : received_.data(); }
    [[nodiscard]] float* made() { return problem_.scatter ? sent_.data() : made_.data(); }

    // The rows of a piece: those of every block.
    void compute(const Split& split, std::size_t piece, const std::function<void()>& look) {
        const Index begin = piece == 0 ? 0 : split.ends[piece - 1];
        for (Index block = 0; block < ranks_; ++block) {
            const Index first = block * problem_.rows;
            product_->run(used(), made(), first + begin, first + split.ends[piece], look);
        }
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
        for (std::size_t place = 0; place < split.ends.size(); ++place) {
            const std::size_t piece = piece_at(split, place);
            if (!problem_.scatter) {
                while (ticket->arrived().value() <= place) {
                }
            }
            compute(split, piece, look);
            if (problem_.scatter) must(ticket->offer(piece));
        }
        must(ticket->wait());
    }

    // Collective matmul: a shard travels on while the one before it is used.
    void ring() {
        const int mine = static_cast<int>(backend_.rank());
        const int ranks = static_cast<int>(ranks_);
        const Index shard = problem_.rows * problem_.width;
        std::memcpy(received_.data() + mine * shard, sent_.data(), sent_.size() * sizeof(float));
        for (int turn = 0; turn < ranks; ++turn) {
            const int have = (mine - turn + ranks) % ranks;
            MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
            if (turn + 1 < ranks) {
                const int next = (have - 1 + ranks) % ranks;
                MPI_Irecv(received_.data() + next * shard, static_cast<int>(shard), MPI_FLOAT,
                          (mine - 1 + ranks) % ranks, turn, MPI_COMM_WORLD, &requests[0]);
                MPI_Isend(received_.data() + have * shard, static_cast<int>(shard), MPI_FLOAT, (mine + 1) % ranks, turn,
                          MPI_COMM_WORLD, &requests[1]);
            }
            int done = 0;
            product_->run(used(), made(), have * problem_.rows, (have + 1) * problem_.rows,
                          [&] { MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE); });
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        }
    }

    template <class Body>
    double timed(const Body& body) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        body();
        return largest(MPI_Wtime() - begin);
    }

    Index wrong_elements() {
        std::vector<float>& got = problem_.scatter ? received_ : made_;
        Index wrong = 0;
        for (std::size_t i = 0; i < got.size(); ++i) wrong += got[i] != right_[i] ? 1 : 0;
        std::ranges::fill(received_, -1.0F);
        if (!problem_.scatter) std::ranges::fill(made_, -1.0F);
        Index all = 0;
        MPI_Allreduce(&wrong, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        return all;
    }

    Problem problem_;
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
    std::vector<float> right_;
    std::unique_ptr<Product> product_;
    double row_seconds_ = 0;
};

// Lines "gather ROWS WIDTH RATIO" or "scatter ROWS WIDTH RATIO".
std::vector<Problem> read_problems(const char* path) {
    std::ifstream file(path);
    std::vector<Problem> problems;
    std::string kind;
    Problem one;
    while (file >> kind >> one.rows >> one.width >> one.ratio) {
        one.scatter = kind == "scatter";
        problems.push_back(one);
    }
    return problems;
}

int run(const char* machine_path, const char* problems_path, int rounds) {
    std::ifstream file(machine_path);
    std::stringstream text;
    text << file.rdbuf();
    const Machine machine = parse_machine(text.str()).value();
    const auto backend = mpi::make_backend(MPI_COMM_WORLD).value();
    Index wrong = 0;
    for (const Problem& problem : read_problems(problems_path)) {
        const nlohmann::json line = Bench(problem, machine, *backend).run(rounds);
        wrong += line["wrong"].get<Index>();
        if (backend->rank() == 0) std::cout << line.dump() << std::endl;
    }
    return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace reshard::overlap

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    if (argc != 4) {
        std::cerr << "overlap MACHINE PROBLEMS ROUNDS\n";
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const int status = reshard::overlap::run(argv[1], argv[2], std::stoi(argv[3]));
    MPI_Finalize();
    return status;
}
