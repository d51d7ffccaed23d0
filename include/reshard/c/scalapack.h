/// \file
/// ScaLAPACK's p?gemr2d over this library. `reshard_scalapack` has them under ScaLAPACK's own names too (`pdgemr2d_`
/// and `Cpdgemr2d`): linked before ScaLAPACK it replaces them. BLACS is the program's.
///
/// Each copies m rows and n columns of A, from (ia, ja) on, to B, from (ib, jb) on; the two may differ in their grids,
/// in their blocks and in the processes that hold them. All processes of `context`, which has both grids, call. A
/// process that is outside of a grid passes a descriptor with the context -1, and nothing else of that end is looked
/// at. Indices count from 1. The context keeps all that is prepared, until blacs_gridexit. Errors go to the MPI
/// error handler of the context's communicator, which by default ends the program with a sentence: a submatrix that is
/// not within its matrix, a leading dimension that is too small, processes that disagree.
#ifndef RESHARD_C_SCALAPACK_H
#define RESHARD_C_SCALAPACK_H

#ifdef __cplusplus
extern "C" {
#endif

/// Copies 32-bit floats.
void reshard_psgemr2d_(const int* m, const int* n, const void* a, const int* ia, const int* ja, const int* desca,
                       void* b, const int* ib, const int* jb, const int* descb, const int* context);
/// Copies 64-bit floats.
void reshard_pdgemr2d_(const int* m, const int* n, const void* a, const int* ia, const int* ja, const int* desca,
                       void* b, const int* ib, const int* jb, const int* descb, const int* context);
/// Copies complex numbers of 32-bit floats.
void reshard_pcgemr2d_(const int* m, const int* n, const void* a, const int* ia, const int* ja, const int* desca,
                       void* b, const int* ib, const int* jb, const int* descb, const int* context);
/// Copies complex numbers of 64-bit floats.
void reshard_pzgemr2d_(const int* m, const int* n, const void* a, const int* ia, const int* ja, const int* desca,
                       void* b, const int* ib, const int* jb, const int* descb, const int* context);
/// Copies 32-bit integers.
void reshard_pigemr2d_(const int* m, const int* n, const void* a, const int* ia, const int* ja, const int* desca,
                       void* b, const int* ib, const int* jb, const int* descb, const int* context);

#ifdef __cplusplus
}
#endif

#endif
