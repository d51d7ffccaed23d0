// Checkpoints from C: their contents, conversions, and the tiles of ranks, which are threads of this process.
#include "reshard/c/files.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "expect.h"

enum { rows = 8, columns = 6, ranks = 2 };

static const char header[] =
    "{\"embed\":{\"dtype\":\"F32\",\"shape\":[8,6],\"data_offsets\":[0,192]},"
    "\"norm\":{\"dtype\":\"F32\",\"shape\":[6],\"data_offsets\":[192,216]}}   ";

/// Writes two tensors; element i of both together is i.
static void write_model(void) {
    FILE* file = fopen("model.safetensors", "wb");
    const int64_t bytes = (int64_t)sizeof header - 1;
    fwrite(&bytes, sizeof bytes, 1, file);
    fwrite(header, 1, (size_t)bytes, file);
    for (int i = 0; i < rows * columns + columns; ++i) {
        const float element = (float)i;
        fwrite(&element, sizeof element, 1, file);
    }
    fclose(file);
}

static void looks_inside(void) {
    reshard_checkpoint* model = NULL;
    SUCCEEDS(reshard_checkpoint_open("model.safetensors", &model, &error));
    EXPECT(strcmp(reshard_checkpoint_format(model), "one safetensors file") == 0);
    EXPECT(reshard_checkpoint_files(model) == 1 && reshard_checkpoint_tensors(model) == 2);
    EXPECT(reshard_checkpoint_ranks(model) == 0);
    reshard_checkpoint_tensor tensor = RESHARD_CHECKPOINT_TENSOR_INITIALIZER;
    SUCCEEDS(reshard_checkpoint_tensor_at(model, 0, &tensor, &error));
    EXPECT(strcmp(tensor.name, "embed") == 0 && strcmp(tensor.dtype, "f32") == 0);
    EXPECT(tensor.dims == 2 && tensor.shape[0] == rows && tensor.shape[1] == columns);
    EXPECT(tensor.boxes == 1 && tensor.missing == 0 && !tensor.twice);
    reshard_checkpoint_box box = RESHARD_CHECKPOINT_BOX_INITIALIZER;
    SUCCEEDS(reshard_checkpoint_box_at(model, 1, 0, &box, &error));
    EXPECT(strcmp(box.file, "model.safetensors") == 0 && box.dims == 1);
    EXPECT(box.offset == 8 + (int64_t)sizeof header - 1 + 192);
    EXPECT(box.begin[0] == 0 && box.shape[0] == columns && box.strides[0] == 4);
    FAILS(RESHARD_USAGE, "there is no tensor 2, there are 2", reshard_checkpoint_tensor_at(model, 2, &tensor, &error));
    FAILS(RESHARD_USAGE, "there is no box -1", reshard_checkpoint_box_at(model, 0, -1, &box, &error));
    tensor.size = 8;
    FAILS(RESHARD_USAGE, "struct reshard_checkpoint_tensor of 8 bytes",
          reshard_checkpoint_tensor_at(model, 0, &tensor, &error));
    reshard_release(model);
    FAILS(RESHARD_IO, "nowhere", reshard_checkpoint_open("nowhere", &model, &error));
    EXPECT(model == NULL && reshard_checkpoint_tensors(NULL) == -1 && reshard_checkpoint_format(NULL) == NULL);
    FAILS(RESHARD_USAGE, "`path`", reshard_checkpoint_open(NULL, &model, &error));
}

static void counts(int64_t written, int64_t all, void* context) {
    EXPECT(0 < written && written <= all);
    ++*(int*)context;
}

static void converts(void) {
    int calls = 0;
    reshard_files_options options = RESHARD_FILES_OPTIONS_INITIALIZER;
    options.form = "ranks";
    options.rules = "target tp=2\nembed = [-, tp]\nnorm = -\n";
    options.casts = "norm=bf16\n\nembed=f32";
    options.memory_bytes = 64 << 20;
    options.verify = 1;
    options.progress = &counts;
    options.context = &calls;
    reshard_files_converted done = RESHARD_FILES_CONVERTED_INITIALIZER;
    SUCCEEDS(reshard_files_convert("model.safetensors", "served", &options, &done, &error));
    EXPECT(calls == 1 && done.files == 2 && done.tensors == 2 && done.verified && done.source_bytes == 216);
    FAILS(RESHARD_IO, "'served' is there already",
          reshard_files_convert("model.safetensors", "served", &options, NULL, &error));
    reshard_checkpoint* served = NULL;
    SUCCEEDS(reshard_checkpoint_open("served", &served, &error));
    EXPECT(reshard_checkpoint_ranks(served) == ranks);
    reshard_release(served);

    // If no form is given, the suffix of the path decides.
    const int64_t chunks[] = {4, 3};
    reshard_files_options array = RESHARD_FILES_OPTIONS_INITIALIZER;
    array.rules = "target file=1\nembed = -\ndrop norm\n";
    array.chunks = chunks, array.dims = 2;
    SUCCEEDS(reshard_files_convert("model.safetensors", "embed.zarr", &array, &done, &error));
    EXPECT(done.files >= 4 && done.tensors == 1);

    // Compressed by crc32c, which needs no library.
    array.codec = "crc32c";
    SUCCEEDS(reshard_files_convert("model.safetensors", "small.zarr", &array, &done, &error));
    EXPECT(done.files >= 4 && done.target_bytes == rows * columns * 4 + 4 * 4 && done.passes == 1);
    array.codec = "lzma";
    FAILS(RESHARD_USAGE, "lzma", reshard_files_convert("model.safetensors", "other.zarr", &array, NULL, &error));
    array.codec = NULL;

    // A program of version 0.2 has no `codec`, no `scratch` and no `passes`.
    array.size = offsetof(reshard_files_options, codec), array.codec = "lzma";
    done.size = offsetof(reshard_files_converted, passes), done.passes = 7;
    SUCCEEDS(reshard_files_convert("model.safetensors", "old.zarr", &array, &done, &error));
    EXPECT(done.tensors == 1 && done.passes == 7);
    array.size = sizeof array, array.codec = NULL;
    done.size = sizeof done;

    array.dims = 0;
    FAILS(RESHARD_USAGE, "`chunks` is given, and `dims` is 0",
          reshard_files_convert("model.safetensors", "other.zarr", &array, NULL, &error));
    options.form = "folder";
    FAILS(RESHARD_USAGE, "there is no form",
          reshard_files_convert("model.safetensors", "other", &options, NULL, &error));
    options.form = "ranks", options.casts = "norm=f31";
    FAILS(RESHARD_SYNTAX, "f31", reshard_files_convert("model.safetensors", "other", &options, NULL, &error));
    options.casts = NULL, options.memory_bytes = 1;
    FAILS(RESHARD_INFEASIBLE, "1 bytes of memory are too few",
          reshard_files_convert("model.safetensors", "other", &options, NULL, &error));
    options.size = 8;
    FAILS(RESHARD_USAGE, "struct reshard_files_options of 8 bytes",
          reshard_files_convert("model.safetensors", "other", &options, NULL, &error));
}

static reshard_local* world;

/// One rank: loads columns, checks them and saves them.
static void* rank_of(void* number) {
    const int64_t rank = *(const int64_t*)number;
    reshard_backend* backend = NULL;
    SUCCEEDS(reshard_local_backend(world, rank, &backend, &error));
    reshard_files_options options = RESHARD_FILES_OPTIONS_INITIALIZER;
    options.rules = "target tp=2\nembed = [-, tp]\nnorm = -\n";
    reshard_loaded* loaded = NULL;
    SUCCEEDS(reshard_files_load(backend, "model.safetensors", &options, &loaded, &error));
    EXPECT(reshard_loaded_count(loaded) == 2 && reshard_loaded_read_bytes(loaded) <= 216);
    reshard_files_tile tiles[] = {RESHARD_FILES_TILE_INITIALIZER, RESHARD_FILES_TILE_INITIALIZER};
    for (int64_t i = 0; i < 2; ++i) SUCCEEDS(reshard_loaded_tile(loaded, i, &tiles[i], &error));
    FAILS(RESHARD_USAGE, "there is no tile 2", reshard_loaded_tile(loaded, 2, &tiles[0], &error));
    EXPECT(strcmp(tiles[0].name, "embed") == 0 && tiles[0].dims == 2 && tiles[0].shape[1] == columns);
    EXPECT(tiles[0].tile[0] == rows && tiles[0].tile[1] == columns / ranks && tiles[0].bytes == 96);
    const float* embed = tiles[0].address;
    for (int64_t i = 0; i < rows * columns / ranks && embed != NULL; ++i)
        EXPECT(embed[i] == (float)(i / 3 * columns + rank * 3 + i % 3));
    options.rules = "source tp=2\nembed = [-, tp]\nnorm = -\n";
    options.resume = options.verify = 1;
    SUCCEEDS(reshard_files_save(backend, "again.safetensors", &options, tiles, 2, &error));
    // A run of the same job has nothing to do. Without resume the name is taken.
    SUCCEEDS(reshard_files_save(backend, "again.safetensors", &options, tiles, 2, &error));
    options.resume = 0;
    FAILS(RESHARD_IO, "is there already", reshard_files_save(backend, "again.safetensors", &options, tiles, 2, &error));
    // A wrong argument on one rank is an error on all.
    const int code = reshard_files_save(backend, rank == 1 ? NULL : "wrong.safetensors", &options, tiles, 2, NULL);
    EXPECT(code != RESHARD_OK);
    reshard_release(loaded);
    reshard_release(backend);
    return NULL;
}

static void ranks_load_and_save(void) {
    reshard_local_options options = RESHARD_LOCAL_OPTIONS_INITIALIZER;
    SUCCEEDS(reshard_local_make(ranks, &options, &world, &error));
    pthread_t threads[ranks];
    int64_t numbers[ranks];
    for (int64_t i = 0; i < ranks; ++i) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, &rank_of, &numbers[i]);
    }
    for (int64_t i = 0; i < ranks; ++i) pthread_join(threads[i], NULL);
    reshard_release(world);
    EXPECT(access("wrong.safetensors", F_OK) != 0);
    char before[216], after[216];
    FILE* one = fopen("model.safetensors", "rb");
    FILE* other = fopen("again.safetensors", "rb");
    EXPECT(one != NULL && other != NULL);
    if (one != NULL && other != NULL) {
        EXPECT(fseek(one, -216, SEEK_END) == 0 && fread(before, 1, 216, one) == 216);
        EXPECT(fseek(other, -216, SEEK_END) == 0 && fread(after, 1, 216, other) == 216);
        EXPECT(memcmp(before, after, 216) == 0);
    }
    if (one != NULL) fclose(one);
    if (other != NULL) fclose(other);
}

int main(void) {
    char folder[] = "/tmp/reshard_files_XXXXXX";
    if (mkdtemp(folder) == NULL || chdir(folder) != 0) return 1;
    write_model();
    looks_inside();
    converts();
    ranks_load_and_save();
    char command[64];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    EXPECT(system(command) == 0);
    printf("%d failed\n", failures);
    return failures == 0 ? 0 : 1;
}
