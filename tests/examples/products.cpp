// Products of matrices beside transfers. Rows are multiplied as they arrive, sums are scattered as they are made, and
// the weights of a layer arrive while the layer before it computes.
#include <algorithm>
#include <cstdio>
#include <span>
#include <vector>
#include "reshard/overlap/choose_pieces.hpp"

#include <reshard/backends/mpi.hpp>
#include <reshard/reshard.hpp>

// Fortran's name of the matrix product in any BLAS.
extern "C" void sgemm_(const char* transposed_a, const char* transposed_b, const int* m, const int* n, const int* k,
                       const float* alpha, const float* a, const int* lda, const float* b, const int* ldb,
                       const float* beta, float* c, const int* ldc);

using namespace reshard;

namespace {

constexpr Index n = 96;      // size of the square weights, and columns of all matrices
constexpr Index rows = 128;  // rows of each rank
constexpr Index slice = 16;  // rows that take about half a millisecond with large matrices

using Matrix = std::vector<float>;  // row-major, n columns

// Small integers, so that every product is exact.
Matrix matrix(Index count, Index seed) {
    Matrix made(static_cast<std::size_t>(count * n));
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = static_cast<float>((static_cast<Index>(i) + seed) % 5) - 2;
    return made;
}

// Computes some rows of c = a b. Polls the transfer after each slice, because over sockets MPI rests between calls.
void multiply(std::span<const float> a, const Matrix& b, std::span<float> c, const Interval& some, Ticket& ticket) {
    for (Index row = some.begin; row < some.end; row += slice) {
        const int columns = n;
        const int count = static_cast<int>(std::min(slice, some.end - row));
        const float one = 1;
        const float zero = 0;
        // BLAS sees the transposes of all three.
        sgemm_("N", "N", &columns, &count, &columns, &one, b.data(), &columns, a.data() + row * n, &columns, &zero,
               c.data() + row * n, &columns);
        static_cast<void>(ticket.arrived());
    }
}

// A product by its definition.
Matrix product(const Matrix& a, const Matrix& b) {
    Matrix c(a.size());
    for (std::size_t i = 0; i < c.size(); ++i) {
        const std::size_t column = i % n;
        for (std::size_t k = 0; k < n; ++k) c[i] += a[i - column + k] * b[k * n + column];
    }
    return c;
}

int wrong_elements(std::span<const float> got, std::span<const float> right) {
    int wrong = got.size() == right.size() ? 0 : 1;
    for (std::size_t i = 0; i < std::min(got.size(), right.size()); ++i) wrong += got[i] == right[i] ? 0 : 1;
    return wrong;
}

// Calls choose_pieces with a network, and the time for the product of some rows of every rank.
PieceChoice choose(const Plan& plan, Index ranks, bool makes_source) {
    PieceWork work;
    work.block = rows;
    work.makes_source = makes_source;
    const Index others = makes_source ? ranks : ranks - 1;
    work.seconds = [=](Index begin, Index end) { return 1e-5 * static_cast<double>((end - begin) * others); };
    if (!makes_source) work.seconds_before = 1e-5 * rows;
    const Machine machine = make_machine("ethernet:nodes=8,per_node=1").value();
    return choose_pieces(judge(plan, AsSteps{}).value(), machine, work).value();
}

int gather_and_multiply(Backend& backend) {
    const Mesh mesh{{"ranks", backend.size()}};
    const Layout by_rows = make_layout(mesh, DType::f32, {rows * backend.size(), n}, P{"ranks", {}}).value();
    const Layout whole = make_layout(mesh, DType::f32, {rows * backend.size(), n}, P{{}, {}}).value();
    const Plan plan{by_rows, whole, {{StepKind::all_gather, whole}}};
    const Matrix all_rows = matrix(rows * backend.size(), 0);
    const auto first = all_rows.begin() + backend.rank() * rows * n;
    const Matrix mine(first, first + rows * n);
    const Matrix b = matrix(n, 3);
    Matrix a(all_rows.size());
    Matrix c(all_rows.size());
    const Split split = choose(plan, backend.size(), false).split.value_or(even_pieces(0, rows, 1));

    // [README overlap_gather_multiply]
    Executor executor = Executor::prepare(judge(plan, split), backend).value();
    const auto bound =
        executor.bind({std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(a)), {}}).value();
    const auto ticket = bound->start().value();
    const Interval own = tile(by_rows, backend.rank())[0].intervals.front();  // which are there from the start
    multiply(mine, b, std::span(c).subspan(static_cast<std::size_t>(own.begin * n)), {0, rows}, *ticket);
    for (std::size_t used = 0; used < executor.arrival_count();) {
        const std::size_t arrived = ticket->arrived().value();
        for (; used < arrived; ++used) {
            const Tile piece = piece_of(tile(whole, backend.rank()), split, piece_at(split, used));
            for (const Interval& some : piece[0].intervals) {  // c = a b
                multiply(a, b, c, {some.begin, std::min(some.end, own.begin)}, *ticket);
                multiply(a, b, c, {std::max(some.begin, own.end), some.end}, *ticket);
            }
        }
    }
    // [README overlap_gather_multiply end]

    return wrong_elements(c, product(all_rows, b));
}

int multiply_and_scatter(Backend& backend) {
    const Mesh mesh{{"ranks", backend.size()}};
    const Layout summands = make_layout(mesh, DType::f32, {rows * backend.size(), n}, P{{}, {}}, {"ranks"}).value();
    const Layout by_rows = make_layout(mesh, DType::f32, {rows * backend.size(), n}, P{"ranks", {}}).value();
    const Plan plan{summands, by_rows, {{StepKind::reduce_scatter, by_rows}}};
    const Matrix b = matrix(n, 3);
    const Matrix a = matrix(rows * backend.size(), backend.rank());
    Matrix c(a.size());
    Matrix sums(static_cast<std::size_t>(rows * n));
    const Split split = choose(plan, backend.size(), true).split.value_or(even_pieces(0, rows, 1));

    // [README overlap_multiply_scatter]
    Executor executor = Executor::prepare(judge(plan, split), backend).value();
    const auto bound =
        executor.bind({std::as_bytes(std::span(c)), std::as_writable_bytes(std::span(sums)), {}}).value();
    const auto ticket = bound->start({.offers_withheld = true}).value();
    for (std::size_t place = 0; place < split.ends.size(); ++place) {
        const std::size_t piece = piece_at(split, place);
        const Tile made = piece_of(tile(summands, backend.rank()), split, piece);
        for (const Interval& some : made[0].intervals) multiply(a, b, c, some, *ticket);  // c = a b
        if (!ticket->offer(piece)) return 1;
    }
    if (!ticket->wait()) return 1;  // sums: this rank's rows of the sum of all c
    // [README overlap_multiply_scatter end]

    Matrix all(a.size());
    for (Index rank = 0; rank < backend.size(); ++rank) {
        const Matrix theirs = product(matrix(rows * backend.size(), rank), b);
        for (std::size_t i = 0; i < all.size(); ++i) all[i] += theirs[i];
    }
    return wrong_elements(sums,
                          std::span(all).subspan(static_cast<std::size_t>(backend.rank() * rows * n), sums.size()));
}

int layer_by_layer(Backend& backend) {
    constexpr std::size_t layers = 3;
    const Mesh mesh{{"ranks", backend.size()}};
    const Layout stored = make_layout(mesh, DType::f32, {n, n}, P{"ranks", {}}).value();
    const Layout used = make_layout(mesh, DType::f32, {n, n}, P{{}, {}}).value();
    const Plan plan{stored, used, {{StepKind::all_gather, used}}};
    std::vector<Matrix> shards;
    std::vector<Matrix> weights(layers, Matrix(tile_count(used, backend.rank())));
    std::vector<Buffers> buffers;
    for (std::size_t k = 0; k < layers; ++k) {
        const Matrix whole = matrix(n, static_cast<Index>(k));
        const auto count = static_cast<Index>(tile_count(stored, backend.rank()));
        shards.emplace_back(whole.begin() + backend.rank() * count, whole.begin() + (backend.rank() + 1) * count);
    }
    for (std::size_t k = 0; k < layers; ++k)
        buffers.push_back({std::as_bytes(std::span(shards[k])), std::as_writable_bytes(std::span(weights[k])), {}});
    std::vector<Matrix> activations(layers + 1, matrix(rows, backend.rank()));

    // [README overlap_layers]
    // A bucket for each layer: they travel in this order, and arrive in it.
    ListPlan list{std::vector<Plan>(layers, plan), {}, {}};
    for (std::size_t k = 0; k < layers; ++k) list.buckets.push_back({k});
    Executor executor = Executor::prepare(judge(list), backend).value();
    const auto bound = executor.bind(buffers).value();
    const auto ticket = bound->start().value();
    for (std::size_t k = 0; k < layers; ++k) {
        while (ticket->arrived().value() <= k) {
        }
        multiply(activations[k], weights[k], activations[k + 1], {0, rows}, *ticket);  // while layer k + 1 travels
    }
    if (!ticket->wait()) return 1;
    // [README overlap_layers end]

    int wrong = 0;
    Matrix right = activations[0];
    for (std::size_t k = 0; k < layers; ++k) {
        wrong += wrong_elements(weights[k], matrix(n, static_cast<Index>(k)));
        right = product(right, weights[k]);
        wrong += wrong_elements(activations[k + 1], right);
    }
    return wrong;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int wrong = 0;
    int rank = 0;
    {
        const auto backend = mpi::make_backend(MPI_COMM_WORLD).value();
        const int own = gather_and_multiply(*backend) + multiply_and_scatter(*backend) + layer_by_layer(*backend);
        MPI_Allreduce(&own, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    }
    if (rank == 0) std::printf("wrong %d\n", wrong);
    MPI_Finalize();
    return wrong == 0 ? 0 : 1;
}
