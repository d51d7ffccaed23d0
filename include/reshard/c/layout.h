/// \file
/// Meshes and layouts: text in JAX's notation, both ways, and what each device holds.
#ifndef RESHARD_C_LAYOUT_H
#define RESHARD_C_LAYOUT_H

#include "reshard/c/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Named axes with sizes over a list of devices, row-major. Device i is rank i.
typedef struct reshard_mesh reshard_mesh;

/// `x=2,y=3`, or `x=2,y=3[0,2,4,1,3,5]` over other devices or in another order; empty text is one device.
/// Errors: syntax, mesh, overflow.
int reshard_mesh_parse(const char* text, reshard_mesh** mesh, reshard_error** error);
const char* reshard_mesh_text(const reshard_mesh* mesh);      ///< what reshard_mesh_parse reads; NULL for NULL
int64_t reshard_mesh_device_count(const reshard_mesh* mesh);  ///< product of the axes; -1 for NULL
int64_t reshard_mesh_world_size(const reshard_mesh* mesh);    ///< one more than the largest device; -1 for NULL

/// The type of a distributed array: element type, shape, mesh, how each dimension is cut, and unreduced axes.
typedef struct reshard_layout reshard_layout;

/// `f32[8192@(x,y),4096,128@z:(2)2]{U:w}`: dtype, extents, for each the axes that cut it, major to minor, and unreduced
/// axes (U a sum; max, min, prod, avg). After the axes `[5,3,2,0]` are the indices of each shard, `/32` cuts blocks of
/// 32 dealt in turn (ScaLAPACK), `[4:0,6:1]` ends of pieces and whose they are. docs/layouts_and_notations.md has the
/// grammar. Errors: syntax, layout, overflow, unsupported.
int reshard_layout_parse(const reshard_mesh* mesh, const char* text, reshard_layout** layout, reshard_error** error);
/// A layout in another notation: `jax`, `spec` (a PartitionSpec), `sdy`, `hlo` or `dtensor` (placements). `mesh` is the
/// mesh in that notation, NULL if the text has its own; `array` is dtype and shape, `f32[8,4]`, NULL for `jax`.
/// Errors: as reshard_layout_parse; usage (an unknown notation is syntax).
int reshard_layout_read(const char* notation, const char* mesh, const char* array, const char* text,
                        reshard_layout** layout, reshard_error** error);
const char* reshard_layout_text(const reshard_layout* layout);  ///< what reshard_layout_parse reads; NULL for NULL
/// The layout in another notation. Errors: unsupported, with the part that the notation cannot express.
int reshard_layout_write(const reshard_layout* layout, const char* notation, reshard_text** text,
                         reshard_error** error);
/// The mesh of the layout, a handle of the caller's.
int reshard_layout_mesh(const reshard_layout* layout, reshard_mesh** mesh, reshard_error** error);

const char* reshard_layout_dtype(const reshard_layout* layout);      ///< f32, bf16, ...; NULL for NULL
int64_t reshard_layout_element_bytes(const reshard_layout* layout);  ///< bytes of one element; -1 for NULL
int64_t reshard_layout_dims(const reshard_layout* layout);           ///< dimensions of the array; -1 for NULL
/// Extents of the whole array, one for each of its `dims` dimensions. Errors: mismatch (another number of them).
int reshard_layout_shape(const reshard_layout* layout, int64_t* extents, int64_t dims, reshard_error** error);
/// The tile of a device, `dims` numbers each: its extents, and the global index of its first element. Either may be
/// NULL. A device that holds nothing has an extent of 0. If a dimension is cut in pieces, the indices of the tile need
/// not follow each other. Errors: mismatch (another number of dimensions), usage (a device below 0).
int reshard_layout_tile(const reshard_layout* layout, int64_t device, int64_t* extents, int64_t* first, int64_t dims,
                        reshard_error** error);
/// Elements of the tile of a device, dense and row-major; -1 for NULL or a device below 0.
int64_t reshard_layout_tile_count(const reshard_layout* layout, int64_t device);
/// Bytes of the same; -1 for NULL or a device below 0.
int64_t reshard_layout_tile_bytes(const reshard_layout* layout, int64_t device);

#ifdef __cplusplus
}
#endif

#endif
