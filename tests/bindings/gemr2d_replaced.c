// A ScaLAPACK program that does not know this library. It moves a matrix with the standard names, and then asks the
// dynamic linker which library has them. If ours is linked before ScaLAPACK or preloaded, the answer must be ours.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void Cblacs_get(int, int, int*);
void Cblacs_gridinit(int*, const char*, int, int);
void Cblacs_gridinfo(int, int*, int*, int*, int*);
void Cblacs_gridexit(int);
int numroc_(const int*, const int*, const int*, const int*, const int*);
void pdgemr2d_(const int*, const int*, double*, const int*, const int*, const int*, double*, const int*, const int*,
               const int*, const int*);
void Cpdgemr2d(int, int, double*, int, int, int*, double*, int, int, int*, int);

static int failures, handled;
static char said[MPI_MAX_ERROR_STRING];

#define EXPECT(what) ((what) ? (void)0 : (void)(printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #what), ++failures))

enum { m = 23, n = 17 };

/// A matrix on a grid of all processes. Each element equals its place.
typedef struct matrix {
    int descriptor[9], rows, columns, row, column, high, wide;
    double* local;
} matrix;

static double* at(const matrix* a, int i, int j) { return &a->local[i + j * a->descriptor[8]]; }

static double place(const matrix* a, int i, int j) {
    const int mb = a->descriptor[4], nb = a->descriptor[5];
    return ((i / mb * a->high + a->row) * mb + i % mb) * n + (j / nb * a->wide + a->column) * nb + j % nb;
}

static matrix matrix_of(int high, int wide, int mb, int nb) {
    matrix a = {{1, 0, m, n, mb, nb, 0, 0, 0}, 0, 0, 0, 0, high, wide, NULL};
    const int first = 0, rows = m, columns = n;
    Cblacs_get(-1, 0, &a.descriptor[1]);
    Cblacs_gridinit(&a.descriptor[1], "R", high, wide);
    int unused[2];
    Cblacs_gridinfo(a.descriptor[1], &unused[0], &unused[1], &a.row, &a.column);
    a.rows = numroc_(&rows, &mb, &a.row, &first, &high);
    a.columns = numroc_(&columns, &nb, &a.column, &first, &wide);
    a.descriptor[8] = a.rows + 1;
    a.local = calloc((size_t)(a.descriptor[8] * a.columns) + 1, sizeof(double));
    for (int j = 0; j < a.columns; ++j)
        for (int i = 0; i < a.rows; ++i) *at(&a, i, j) = place(&a, i, j);
    return a;
}

static int wrong_in(const matrix* a) {
    int wrong = 0;
    for (int j = 0; j < a->columns; ++j)
        for (int i = 0; i < a->rows; ++i) wrong += *at(a, i, j) != place(a, i, j);
    return wrong;
}

static void on_error(MPI_Comm* communicator, int* code, ...) {
    (void)communicator;
    int length = 0;
    MPI_Error_string(*code, said, &length);
    ++handled;
}

static int ours(const char* function) {
    Dl_info where;
    void* found = dlsym(RTLD_DEFAULT, function);
    return found != NULL && dladdr(found, &where) != 0 && strstr(where.dli_fname, "libreshard_scalapack") != NULL;
}

int main(int count, char** arguments) {
    MPI_Init(&count, &arguments);
    MPI_Errhandler quiet;
    MPI_Comm_create_errhandler(on_error, &quiet);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, quiet);
    matrix a = matrix_of(2, 2, 3, 4), b = matrix_of(4, 1, 5, 2);
    const int one = 1, rows = m, columns = n, wanted_ours = count < 2;
    EXPECT(ours("pdgemr2d_") == wanted_ours && ours("Cpdgemr2d") == wanted_ours);
    for (int again = 0; again < 3; ++again) {
        memset(b.local, 0, sizeof(double) * (size_t)(b.descriptor[8] * b.columns));
        pdgemr2d_(&rows, &columns, a.local, &one, &one, a.descriptor, b.local, &one, &one, b.descriptor,
                  &a.descriptor[1]);
        EXPECT(wrong_in(&b) == 0);
    }
    memset(b.local, 0, sizeof(double) * (size_t)(b.descriptor[8] * b.columns));
    Cpdgemr2d(m, n, a.local, 1, 1, a.descriptor, b.local, 1, 1, b.descriptor, a.descriptor[1]);
    EXPECT(wrong_in(&b) == 0);
    if (wanted_ours) {
        // Two submatrices of one array: columns 1 to 5 become columns 11 to 15.
        matrix c = matrix_of(2, 2, 3, 4);
        Cpdgemr2d(m, 5, c.local, 1, 1, c.descriptor, c.local, 1, 11, c.descriptor, c.descriptor[1]);
        Cpdgemr2d(m, n, c.local, 1, 1, c.descriptor, b.local, 1, 1, b.descriptor, c.descriptor[1]);
        int wrong = 0;
        for (int j = 0; j < n; ++j)
            for (int i = 0; i < b.rows; ++i) wrong += *at(&b, i, j) != place(&b, i, j >= 10 && j < 15 ? j - 10 : j);
        EXPECT(wrong == 0 && handled == 0);
        // ScaLAPACK would end the program here; ours calls MPI's error handler.
        Cpdgemr2d(m, n, a.local, 2, 1, a.descriptor, b.local, 1, 1, b.descriptor, a.descriptor[1]);
        EXPECT(handled == 1 && strstr(said, "of A, the submatrix has rows 2 to 24 of 23") != NULL);
        a.descriptor[8] = 1;
        Cpdgemr2d(m, n, a.local, 1, 1, a.descriptor, b.local, 1, 1, b.descriptor, a.descriptor[1]);
        EXPECT(handled == 2 && strstr(said, "leading dimension") != NULL);
        free(c.local);
        Cblacs_gridexit(c.descriptor[1]);
    }
    free(a.local), free(b.local);
    Cblacs_gridexit(b.descriptor[1]);
    Cblacs_gridexit(a.descriptor[1]);
    MPI_Errhandler_free(&quiet);
    MPI_Finalize();
    printf("%d failed\n", failures);
    return failures == 0 ? 0 : 1;
}
