#include "overlap/work.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

// Fortran's name of the product of two matrices, in any BLAS.
extern "C" void sgemm_(const char* transposed_a, const char* transposed_b, const int* m, const int* n, const int* k,
                       const float* alpha, const float* a, const int* lda, const float* b, const int* ldb,
                       const float* beta, float* c, const int* ldc);

namespace reshard::overlap {
namespace {

constexpr double slice_seconds = 0.0005;
constexpr Index block_rows = 64;  // of a slice: a product of few rows spends its time on reading the other matrix

}  // namespace

Product::Product(Index rows, Index inner, Index columns)
    : rows_(rows), inner_(inner), columns_(columns), b_(static_cast<std::size_t>(inner * columns)) {
    for (std::size_t i = 0; i < b_.size(); ++i) b_[i] = static_cast<float>(i % 7) - 3;
}

void Product::run(const float* a, const float* b, float* c, Index begin, Index end,
                  const std::function<void()>& look) const {
    const double started = MPI_Wtime();
    Index rows = 0;
    Index made = 0;  // elements since the last look
    for (Index row = begin; row < end; row += rows) {
        rows = end - row < 2 * block_rows ? end - row : block_rows;  // no few are left for the end
        const Index slice = std::clamp<Index>(slice_elements_ / rows, 1, columns_);
        for (Index column = 0; column < columns_; column += slice) {
            // BLAS sees the transposes of all three.
            const int m = static_cast<int>(std::min(slice, columns_ - column));
            const int n = static_cast<int>(rows);
            const int k = static_cast<int>(inner_);
            const int width = static_cast<int>(columns_);
            const float one = 1;
            const float zero = 0;
            sgemm_("N", "N", &m, &n, &k, &one, b + column, &width, a + row * inner_, &k, &zero,
                   c + row * columns_ + column, &width);
            made += rows * m;
            if (made < slice_elements_) continue;
            look();
            made = 0;
        }
        const double due = started + static_cast<double>(row + rows - begin) * row_seconds_;
        for (double left = due - MPI_Wtime(); left > 0; left = due - MPI_Wtime()) {
            std::this_thread::sleep_for(std::chrono::duration<double>(std::min(left, slice_seconds)));
            look();
        }
    }
}

double Product::measure(const float* a, float* c) {
    std::vector<double> times;
    double least = 1;  // seconds of an element; no disturbance leaves short slices
    slice_elements_ = block_rows;
    const Index rows = std::min<Index>(rows_, 4 * block_rows);
    for (int round = 0; round < 9; ++round) {
        const double begin = MPI_Wtime();
        run(a, c, 0, rows, [] {});
        const double row = (MPI_Wtime() - begin) / static_cast<double>(rows);
        if (round >= 4) {
            times.push_back(row);
        } else {  // short slices take longer for an element, so that their length is found step by step
            least = std::min(least, row / static_cast<double>(columns_));
            slice_elements_ = std::max<Index>(static_cast<Index>(slice_seconds / least), 1);
        }
    }
    std::ranges::sort(times);
    return times[times.size() / 2];
}

}  // namespace reshard::overlap
