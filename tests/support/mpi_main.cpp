// GoogleTest's main under MPI. Every rank runs every test. Rank 0 prints the results; other ranks print only failures.
#include <gtest/gtest.h>
#include <mpi.h>

#include <iostream>
#include <string>

namespace {

class FailuresOnly final : public testing::EmptyTestEventListener {
public:
    explicit FailuresOnly(int rank) : rank_(rank) {}

private:
    // Kept here because GoogleTest holds its lock while it reports a result, and a query for the current test would
    // take the same lock.
    void OnTestStart(const testing::TestInfo& test) override { test_ = test.name(); }
    void OnTestPartResult(const testing::TestPartResult& result) override {
        if (!result.failed()) return;
        const char* file = result.file_name() != nullptr ? result.file_name() : "";
        std::cout << "rank " << rank_ << ": " << test_ << ": " << file << ':' << result.line_number() << ": "
                  << result.summary() << std::endl;
    }
    int rank_;
    std::string test_;
};

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    testing::InitGoogleTest(&argc, argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank != 0) {
        testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
        delete listeners.Release(listeners.default_result_printer());
        listeners.Append(new FailuresOnly(rank));
    }
    const int own = RUN_ALL_TESTS();
    int any = 0;
    MPI_Allreduce(&own, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Finalize();
    return any;
}
