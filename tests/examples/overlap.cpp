// A gather with rows used as they arrive, and a reduction with summands sent as they are made.
#include <cstdio>
#include <span>
#include <vector>
#include "reshard/overlap/choose_pieces.hpp"
#include "reshard/overlap/measure_work.hpp"

#include <reshard/backends/mpi.hpp>
#include <reshard/reshard.hpp>

using namespace reshard;

namespace {

constexpr Index n = 256;     // columns
constexpr Index rows = 128;  // rows of each rank

// Stands for a product of matrices: adds up rows, and polls the transport now and then.
double use(std::span<const double> matrix, const Side& some, Ticket& ticket) {
    double sum = 0;
    for (const Interval& interval : some.intervals)
        for (Index row = interval.begin; row < interval.end; ++row) {
            for (Index column = 0; column < n; ++column) sum += matrix[static_cast<std::size_t>(row * n + column)];
            static_cast<void>(ticket.arrived());
        }
    return sum;
}

int gather(Backend& backend) {
    const Mesh mesh{{"ranks", backend.size()}};
    const Layout by_rows = make_layout(mesh, DType::f64, {rows * backend.size(), n}, P{"ranks", {}}).value();
    const Layout whole = make_layout(mesh, DType::f64, {rows * backend.size(), n}, P{{}, {}}).value();
    const Plan plan{by_rows, whole, {{StepKind::all_gather, whole}}};
    const std::vector<double> mine(tile_count(by_rows, backend.rank()), static_cast<double>(backend.rank()));
    std::vector<double> all(tile_count(whole, backend.rank()));
    double sum = 0;

    // [README overlap_arrived]
    // Some rows of every rank at a time. The first piece is small: until it has arrived there is nothing to do.
    const Split split{
        .dim = 0, .block = rows, .ends = {rows / 16, rows / 4, rows / 2, rows}, .order = {}, .overlapped = true};
    Executor executor = Executor::prepare(judge(plan, split), backend).value();
    const auto bound =
        executor.bind({std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)), {}}).value();
    const auto ticket = bound->start().value();
    for (std::size_t used = 0; used < executor.arrival_count();) {
        const std::size_t arrived = ticket->arrived().value();
        for (; used < arrived; ++used) {
            const Tile piece = piece_of(tile(whole, backend.rank()), split, piece_at(split, used));
            sum += use(all, piece[0], *ticket);  // which calls ticket->arrived() every half millisecond
        }
    }
    // [README overlap_arrived end]

    const auto ranks = static_cast<double>(backend.size());
    return sum == static_cast<double>(rows * n) * ranks * (ranks - 1) / 2 ? 0 : 1;
}

// Work of a known length behind a gather over a known network.
int choose(Backend& backend) {
    const Index ranks = backend.size();
    const Mesh mesh{{"ranks", ranks}};
    const Layout by_rows = make_layout(mesh, DType::f64, {rows * ranks, n}, P{"ranks", {}}).value();
    const Layout whole = make_layout(mesh, DType::f64, {rows * ranks, n}, P{{}, {}}).value();
    const Plan plan{by_rows, whole, {{StepKind::all_gather, whole}}};
    const Machine machine = make_machine("ethernet:nodes=8,per_node=1").value();
    std::vector<double> mine(tile_count(by_rows, backend.rank()), 1.0);
    std::vector<double> all(tile_count(whole, backend.rank()));
    double sum = 0;
    const auto compute_others = [&](Index begin, Index end) {
        for (Index rank = 0; rank < ranks; ++rank) {
            if (rank == backend.rank()) continue;
            for (Index i = (rank * rows + begin) * n; i < (rank * rows + end) * n; ++i)
                sum += all[static_cast<std::size_t>(i)];
        }
    };

    // [README overlap_choose]
    // (begin, end): of work on those rows of every rank but the own ones, which are there from the start.
    WorkTimes seconds = measure_work(rows, compute_others);
    const int lengths = static_cast<int>(seconds.seconds.size());
    MPI_Allreduce(MPI_IN_PLACE, seconds.seconds.data(), lengths, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    PieceWork work;
    work.dim = 0;
    work.block = rows;
    work.seconds = seconds;
    work.seconds_before = seconds(0, rows) / static_cast<double>(ranks - 1);  // of the own rows
    const Judged<Plan> judged = judge(plan, AsSteps{}).value();
    const PieceChoice choice = choose_pieces(judged, machine, work).value();
    Executor executor =
        Executor::prepare(judge(plan, choice.split ? Execution(*choice.split) : judged.execution()), backend).value();
    // [README overlap_choose end]

    const auto bound =
        executor.bind({std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)), {}}).value();
    if (!bound->start().value()->wait()) return 1;
    int wrong = sum == 0 && choice.picoseconds <= choice.serial_picoseconds ? 0 : 1;
    for (const double value : all) wrong += value == 1.0 ? 0 : 1;
    return wrong;
}

int reduce(Backend& backend) {
    const Mesh mesh{{"ranks", backend.size()}};
    const Layout summands = parse_layout(mesh, "f64[1024,256]{U:ranks}").value();
    const Layout by_columns = parse_layout(mesh, "f64[1024,256@ranks]").value();
    const Plan plan{summands, by_columns, {{StepKind::reduce_scatter, by_columns}}};
    std::vector<double> mine(tile_count(summands, backend.rank()));
    std::vector<double> sums(tile_count(by_columns, backend.rank()));
    const auto make = [&](const Interval& some) {
        for (Index i = some.begin * n; i < some.end * n; ++i) mine[static_cast<std::size_t>(i)] = 1;
    };

    // [README overlap_offer]
    const Split split{.dim = 0, .block = 1024, .ends = {256, 512, 768, 960, 1024}, .order = {}, .overlapped = true};
    Executor executor = Executor::prepare(judge(plan, split), backend).value();
    const auto bound =
        executor.bind({std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(sums)), {}}).value();
    const auto ticket = bound->start({.offers_withheld = true}).value();
    for (std::size_t piece = 0; piece < split.ends.size(); ++piece) {
        make({piece == 0 ? 0 : split.ends[piece - 1], split.ends[piece]});  // while the piece before it travels
        if (!ticket->offer(piece)) return 1;
    }
    if (!ticket->wait()) return 1;
    // [README overlap_offer end]

    int wrong = 0;
    for (const double sum : sums) wrong += sum == static_cast<double>(backend.size()) ? 0 : 1;
    return wrong;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int wrong = 0;
    int rank = 0;
    {
        const auto backend = mpi::make_backend(MPI_COMM_WORLD).value();
        const int own = gather(*backend) + choose(*backend) + reduce(*backend);
        MPI_Allreduce(&own, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    }
    if (rank == 0) std::printf("wrong %d\n", wrong);
    MPI_Finalize();
    return wrong == 0 ? 0 : 1;
}
