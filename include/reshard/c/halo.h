/// \file
/// Arrays with halos: each rank keeps its block and the cells around it. A fill copies these cells from the blocks of
/// other ranks, and a sum adds them to these blocks. docs/halos.md says which halos there may be.
#ifndef RESHARD_C_HALO_H
#define RESHARD_C_HALO_H

#include "reshard/c/run.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A layout whose tiles overlap: a layout that says which device owns an element, and a halo for each dimension.
typedef struct reshard_halo_layout reshard_halo_layout;

/// `f64[256@x~1%,64@y~(2,0)]`: the text of a layout, and after a dimension `~` the cells of its halo, one number or
/// (before,after). `%` makes it periodic. Errors: as reshard_layout_parse; unsupported (summands, a block-cyclic
/// dimension with a halo, a periodic halo of more than 8 times its extent).
int reshard_halo_layout_parse(const reshard_mesh* mesh, const char* text, reshard_halo_layout** layout,
                              reshard_error** error);
/// The text of the layout, which reshard_halo_layout_parse reads; NULL for NULL.
const char* reshard_halo_layout_text(const reshard_halo_layout* layout);
/// The array of a device, `dims` numbers each: its extents, and where its block begins and ends in it. Each may be
/// NULL. A device that owns nothing has an array of extents 0. Errors: mismatch (another number of dimensions), usage
/// (a device below 0).
int reshard_halo_layout_array(const reshard_halo_layout* layout, int64_t device, int64_t* extents, int64_t* begin,
                              int64_t* end, int64_t dims, reshard_error** error);
/// Bytes of the array of a device, dense and row-major; -1 for NULL or a device below 0.
int64_t reshard_halo_layout_bytes(const reshard_halo_layout* layout, int64_t device);

/// An array with halos on one rank, ready to be filled and summed any number of times.
typedef struct reshard_halo reshard_halo;

/// Collective. `array` is the place of the array in its memory; NULL: row-major. It may differ from rank to rank.
/// Errors: mismatch (ranks bring different layouts, the backend has too few ranks, a storage does not fit), overflow,
/// backend.
int reshard_halo_make(reshard_backend* backend, const reshard_halo_layout* layout, const reshard_storage* array,
                      reshard_halo** halo, reshard_error** error);
/// f32, bf16, ...; NULL for NULL.
const char* reshard_halo_dtype(const reshard_halo* halo);
/// Bytes that a fill brings to this rank from others, the fewest possible; -1 for NULL.
int64_t reshard_halo_received_bytes(const reshard_halo* halo);

/// Fills the halo of the array from the blocks of all ranks, and writes nothing else. Collective. Errors: mismatch (the
/// memory is too small), usage (NULL), backend; then it must be made anew.
int reshard_halo_fill(reshard_halo* halo, void* array, int64_t bytes, reshard_error** error);
/// The same, but does not wait for the end. Until then the block may be read, and nothing else touched.
int reshard_halo_fill_start(reshard_halo* halo, void* array, int64_t bytes, reshard_ticket** ticket,
                            reshard_error** error);
/// Adds each cell of the halos to the element of its owner's block, and leaves the halos as they are: the adjoint of a
/// fill. Collective; the first call prepares. It adds in a fixed order: the element, then its cells by ascending rank.
/// Errors: as reshard_halo_fill; unsupported (the element type has no sums, memory on a device).
int reshard_halo_sum(reshard_halo* halo, void* array, int64_t bytes, reshard_error** error);
/// The same, but does not wait for the end. Until then the halo may be read, and nothing else touched.
int reshard_halo_sum_start(reshard_halo* halo, void* array, int64_t bytes, reshard_ticket** ticket,
                           reshard_error** error);

#ifdef __cplusplus
}
#endif

#endif
