// The assertions of the C tests. A failure is counted and printed, and the test continues.
#ifndef RESHARD_TESTS_EXPECT_H
#define RESHARD_TESTS_EXPECT_H

#include <stdio.h>
#include <string.h>

#include "reshard/c.h"

static int failures;

#define EXPECT(what)                                                  \
    do {                                                              \
        if (!(what)) {                                                \
            printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
            ++failures;                                               \
        }                                                             \
    } while (0)

/// Expects that a call succeeds; otherwise prints its error.
#define SUCCEEDS(call)                                                                           \
    do {                                                                                         \
        reshard_error* error = NULL;                                                             \
        if ((call) != RESHARD_OK) {                                                              \
            printf("%s:%d: %s\n%s\n", __FILE__, __LINE__, #call, reshard_error_describe(error)); \
            ++failures;                                                                          \
        }                                                                                        \
        reshard_release(error);                                                                  \
    } while (0)

/// Expects that a call fails with this code, and that its message contains these words.
#define FAILS(code, words, call)                                                            \
    do {                                                                                    \
        reshard_error* error = NULL;                                                        \
        const int was = (call);                                                             \
        if (was != (code) || reshard_error_code(error) != (code) ||                         \
            strstr(reshard_error_message(error), words) == NULL) {                          \
            printf("%s:%d: %s: %s %s\n", __FILE__, __LINE__, #call, reshard_code_name(was), \
                   reshard_error_describe(error));                                          \
            ++failures;                                                                     \
        }                                                                                   \
        reshard_release(error);                                                             \
    } while (0)

static inline reshard_mesh* mesh_of(const char* text) {
    reshard_mesh* mesh = NULL;
    SUCCEEDS(reshard_mesh_parse(text, &mesh, &error));
    return mesh;
}

static inline reshard_layout* layout_of(const char* mesh_text, const char* text) {
    reshard_mesh* mesh = mesh_of(mesh_text);
    reshard_layout* layout = NULL;
    SUCCEEDS(reshard_layout_parse(mesh, text, &layout, &error));
    reshard_release(mesh);  // the layout keeps it
    return layout;
}

#endif
