// GoogleTest's main under MPI: every rank runs every test; rank 0 tells the story, the others speak up when they fail.
#include <gtest/gtest.h>
#include <mpi.h>

#include <iostream>

namespace {

class FailuresOnly final : public testing::EmptyTestEventListener {
public:
    explicit FailuresOnly(int rank) : rank_(rank) {}

private:
    void OnTestPartResult(const testing::TestPartResult& result) override {
        if (!result.failed()) return;
        const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
        std::cout << "rank " << rank_ << ": " << (test != nullptr ? test->name() : "outside of tests") << ": "
                  << (result.file_name() != nullptr ? result.file_name() : "") << ':' << result.line_number() << ": "
                  << result.summary() << std::endl;
    }
    int rank_;
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
