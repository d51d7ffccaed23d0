#include "overlap/work.hpp"

#include <algorithm>

// Fortran's name of the product of two matrices, of whatever BLAS there is.
extern "C" void sgemm_(const char* transposed_a, const char* transposed_b, const int* m, const int* n, const int* k,
                       const float* alpha, const float* a, const int* lda, const float* b, const int* ldb,
                       const float* beta, float* c, const int* ldc);

namespace reshard::overlap {
namespace {

constexpr double slice_seconds = 0.0005;

}  // namespace

Product::Product(Index rows, Index inner, Index columns)
    : rows_(rows), inner_(inner), columns_(columns), b_(static_cast<std::size_t>(inner * columns)) {
    for (std::size_t i = 0; i < b_.size(); ++i) b_[i] = static_cast<float>(i % 7) - 3;
}

void Product::run(const float* a, float* c, Index begin, Index end, const std::function<void()>& look) const {
    for (Index row = begin; row < end; row += slice_) {
        // BLAS sees the transposes of all three.
        const int m = static_cast<int>(columns_);
        const int n = static_cast<int>(std::min(slice_, end - row));
        const int k = static_cast<int>(inner_);
        const float one = 1;
        const float zero = 0;
        sgemm_("N", "N", &m, &n, &k, &one, b_.data(), &m, a + row * inner_, &k, &zero, c + row * columns_, &m);
        look();
    }
}

double Product::measure(const float* a, float* c) {
    std::vector<double> times;
    slice_ = 1;
    for (int round = 0; round < 7; ++round) {
        const Index rows = std::min<Index>(rows_, std::max<Index>(8 * slice_, 8));
        const double begin = MPI_Wtime();
        run(a, c, 0, rows, [] {});
        const double row = (MPI_Wtime() - begin) / static_cast<double>(rows);
        if (round >= 2) times.push_back(row);  // by then slices are as long as they should be
        slice_ = std::clamp<Index>(static_cast<Index>(slice_seconds / row), 1, rows_);
    }
    std::ranges::sort(times);
    return times[times.size() / 2];
}

}  // namespace reshard::overlap
