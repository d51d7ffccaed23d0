// Products of matrices beside a transfer: the transferred rows are used, or made, one by one.
#pragma once

#include <mpi.h>

#include <functional>
#include <vector>

#include "reshard/planner/integer.hpp"

namespace reshard::overlap {

/// C = A B in rows of A and C, row-major, in single precision: A has `inner` columns, B and C `columns`.
class Product {
public:
    /// B is small integers.
    Product(Index rows, Index inner, Index columns);

    /// The rows from `begin` to `end` of C, with a call of `look` about every half millisecond (some columns of
    /// some rows, or several short rows).
    void run(const float* a, float* c, Index begin, Index end, const std::function<void()>& look) const {
        run(a, b_.data(), c, begin, end, look);
    }
    /// The same with another B.
    void run(const float* a, const float* b, float* c, Index begin, Index end, const std::function<void()>& look) const;

    /// Median seconds of a row when many are made. Sets how many make a slice.
    double measure(const float* a, float* c);

    /// From now on a row takes at least so long. The core sleeps for the rest of the time, as if an accelerator
    /// computed beside it.
    void take(double row_seconds) { row_seconds_ = row_seconds; }

    [[nodiscard]] Index columns() const { return columns_; }

private:
    Index rows_;
    Index inner_;
    Index columns_;
    Index slice_elements_ = 1;  // of C
    double row_seconds_ = 0;    // at least
    std::vector<float> b_;
};

}  // namespace reshard::overlap
