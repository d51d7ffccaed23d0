// ScaLAPACK's p?gemr2d, in its own names and in ours.
#include <cstring>
#include <functional>
#include <new>

#include "bindings/scalapack/question.hpp"
#include "reshard/backends/mpi.hpp"
#include "reshard/c/scalapack.h"
#include "src/base/try.hpp"

namespace reshard::scalapack {
namespace {

struct Array {
    void* local;
    int row, column;  // of the submatrix, from 1
    const Descriptor* descriptor;
};

Result<End> end_of(const Array& array) {
    End end;
    const Grid grid = Grid::of(array.descriptor->context);
    if (!grid.inside()) return end;
    RESHARD_ASSIGN(end.grid, number_of_grid(communicator_of(array.descriptor->context)));
    end.shape = grid;
    end.descriptor = *array.descriptor;
    end.begin = {array.row - 1, array.column - 1};
    return end;
}

bool overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
    const std::less<const std::byte*> before;  // ordered even between unrelated allocations
    return !a.empty() && !b.empty() && before(a.data(), b.data() + b.size()) && before(b.data(), a.data() + a.size());
}

// Two submatrices of one array may lie between each other. Then the source is copied out of the way first.
Result<void> run(Executor& executor, const void* source, void* target) {
    const RankPlan& plan = executor.plans().front();
    const std::span in(static_cast<const std::byte*>(source), static_cast<std::size_t>(plan.source_bytes));
    const std::span out(static_cast<std::byte*>(target), static_cast<std::size_t>(plan.target_bytes));
    if (!overlap(in, out)) return executor.run(in, out);
    const std::vector<std::byte> aside(in.begin(), in.end());
    return executor.run(aside, out);
}

Result<void> move(MPI_Comm communicator, DType dtype, std::array<int, 2> shape, const Array& a, const Array& b) {
    RESHARD_TRY(const auto& backend, mpi::backend_of(communicator));
    Redistributor& kept = Redistributor::of(*backend);
    const auto source = end_of(a);
    const auto target = end_of(b);
    for (const auto* end : {&source, &target}) {
        if (*end) continue;
        refuse(*backend, end->error());  // the other processes wait for this vote
        return tl::unexpected(end->error());
    }
    const Question question{dtype, shape, *source, *target};
    const auto asked = [&] { return ask(communicator, question); };
    RESHARD_TRY(Executor* const executor, kept.executor_of(name_of(question), asked));
    auto moved = run(*executor, a.local, b.local);
    if (!moved) kept.clear();
    return moved;
}

// p?gemr2d has no argument for an error. An error goes to the program's MPI error handler, which by default prints the
// sentence and ends the program.
void raise(MPI_Comm communicator, const char* sentence) {
    int code = MPI_ERR_OTHER;
    if (MPI_Add_error_class(&code) == MPI_SUCCESS) {
        std::array<char, MPI_MAX_ERROR_STRING> text = {};
        std::strncpy(text.data(), sentence, text.size() - 1);
        MPI_Add_error_string(code, text.data());
    }
    MPI_Comm_call_errhandler(communicator, code);
}

void gemr2d(DType dtype, int rows, int columns, const Array& a, const Array& b, int context) {
    if (rows == 0 || columns == 0 || !Grid::of(context).inside()) return;
    const MPI_Comm communicator = communicator_of(context);
    try {
        const auto moved = move(communicator, dtype, {rows, columns}, a, b);
        if (!moved) raise(communicator, describe(moved.error()).c_str());
    } catch (const std::bad_alloc&) {
        raise(communicator, "p?gemr2d: there is not enough memory");
    } catch (...) {
        raise(communicator, "p?gemr2d: an unknown exception was thrown");
    }
}

Array array(const void* local, int row, int column, const int* descriptor) {
    return {const_cast<void*>(local), row, column, reinterpret_cast<const Descriptor*>(descriptor)};
}

}  // namespace
}  // namespace reshard::scalapack

// Three names for each type: ScaLAPACK's Fortran and C names, and our own.
#define RESHARD_GEMR2D(letter, element)                                                                                \
    void reshard_p##letter##gemr2d_(const int* m, const int* n, const void* a, const int* ia, const int* ja,           \
                                    const int* desca, void* b, const int* ib, const int* jb, const int* descb,         \
                                    const int* context) {                                                              \
        using namespace reshard::scalapack;                                                                            \
        gemr2d(reshard::DType::element, *m, *n, array(a, *ia, *ja, desca), array(b, *ib, *jb, descb), *context);       \
    }                                                                                                                  \
    void p##letter##gemr2d_(const int* m, const int* n, const void* a, const int* ia, const int* ja, const int* desca, \
                            void* b, const int* ib, const int* jb, const int* descb, const int* context) {             \
        reshard_p##letter##gemr2d_(m, n, a, ia, ja, desca, b, ib, jb, descb, context);                                 \
    }                                                                                                                  \
    void Cp##letter##gemr2d(int m, int n, const void* a, int ia, int ja, const int* desca, void* b, int ib, int jb,    \
                            const int* descb, int context) {                                                           \
        reshard_p##letter##gemr2d_(&m, &n, a, &ia, &ja, desca, b, &ib, &jb, descb, &context);                          \
    }

extern "C" {
RESHARD_GEMR2D(s, f32)
RESHARD_GEMR2D(d, f64)
RESHARD_GEMR2D(c, c64)
RESHARD_GEMR2D(z, c128)
RESHARD_GEMR2D(i, i32)
}
