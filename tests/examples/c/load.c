// The file examples of docs/c.md, on 4 ranks: loads the tiles of ranks from a checkpoint, which this program writes
// first.
#include <mpi.h>
#include <reshard/c/files.h>
#include <reshard/c_mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void stop(reshard_error* error) {
    puts(reshard_error_describe(error));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/// Writes a tensor of 8 by 2 elements, counted from 0.
static void write_model(void) {
    const char header[] = "{\"embed\":{\"dtype\":\"F32\",\"shape\":[8,2],\"data_offsets\":[0,64]}}  ";
    const int64_t bytes = sizeof header - 1;
    float elements[16];
    for (int i = 0; i < 16; ++i) elements[i] = (float)i;
    FILE* file = fopen("c_load.safetensors", "wb");
    fwrite(&bytes, sizeof bytes, 1, file);
    fwrite(header, 1, (size_t)bytes, file);
    fwrite(elements, sizeof elements, 1, file);
    fclose(file);
}

static void look_and_convert(void) {
    remove("c_half.safetensors"), remove("c_half.safetensors.reshard.json");
    const char* path = "c_load.safetensors";
    const char* half = "c_half.safetensors";
    // [README c_convert]
    reshard_error* error;
    reshard_checkpoint* model;
    if (reshard_checkpoint_open(path, &model, &error)) stop(error);
    for (int64_t i = 0; i < reshard_checkpoint_tensors(model); ++i) {
        reshard_checkpoint_tensor tensor = RESHARD_CHECKPOINT_TENSOR_INITIALIZER;
        if (reshard_checkpoint_tensor_at(model, i, &tensor, &error)) stop(error);
        printf("%s: %s of %lld dimensions in %lld boxes\n", tensor.name, tensor.dtype, (long long)tensor.dims,
               (long long)tensor.boxes);
    }
    reshard_files_options options = RESHARD_FILES_OPTIONS_INITIALIZER;
    options.casts = "bf16", options.memory_bytes = 256 << 20;
    if (reshard_files_convert(path, half, &options, NULL, &error)) stop(error);
    // [README c_convert end]
    reshard_release(model);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) write_model(), look_and_convert();
    MPI_Barrier(MPI_COMM_WORLD);
    const char* path = "c_load.safetensors";
    // [README c_load]
    reshard_error* error;
    reshard_backend* backend;
    if (reshard_mpi_backend(MPI_COMM_WORLD, NULL, &backend, &error)) stop(error);
    reshard_files_options options = RESHARD_FILES_OPTIONS_INITIALIZER;
    options.rules = "target ranks=4\nembed = [ranks, -]\n";
    reshard_loaded* model;
    if (reshard_files_load(backend, path, &options, &model, &error)) stop(error);
    for (int64_t i = 0; i < reshard_loaded_count(model); ++i) {
        reshard_files_tile tile = RESHARD_FILES_TILE_INITIALIZER;
        if (reshard_loaded_tile(model, i, &tile, &error)) stop(error);
        if (rank == 3)
            printf("%s: %lld of %lld rows, from %g\n", tile.name, (long long)tile.tile[0], (long long)tile.shape[0],
                   ((float*)tile.address)[0]);
    }
    // [README c_load end]
    reshard_release(model), reshard_release(backend);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        remove("c_load.safetensors"), remove("c_half.safetensors"), remove("c_half.safetensors.reshard.json");
    return MPI_Finalize();
}
