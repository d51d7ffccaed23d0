// A user's MPI program; the library borrows its communicator.
#include <cstdio>
#include <reshard/backends/mpi.hpp>
#include <reshard/reshard.hpp>

int main(int count, char** arguments) {
    MPI_Init(&count, &arguments);
    int failed = 0;
    {
        const auto backend = reshard::mpi::make_backend(MPI_COMM_WORLD);
        failed = backend && (*backend)->size() == 1 ? 0 : 1;
        std::printf("%s\n", backend ? "mpi" : backend.error().message.c_str());
    }
    MPI_Finalize();
    return failed;
}
