// A user's MPI program in C.
#include <reshard/c_mpi.h>

int main(int count, char** arguments) {
    MPI_Init(&count, &arguments);
    reshard_backend* backend = NULL;
    const int failed = reshard_mpi_backend(MPI_COMM_SELF, NULL, &backend, NULL) || reshard_backend_size(backend) != 1;
    reshard_release(backend);
    MPI_Finalize();
    return failed;
}
