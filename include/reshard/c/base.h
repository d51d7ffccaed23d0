/// \file
/// What every call of the C interface has in common: how it answers, and who owns what.
///
/// - A call that can fail returns 0 or a ::reshard_code, and stores an error where its last argument points, unless
/// that
///   is NULL. Where it fails it stores NULL in place of a result. Nothing is printed, and no C++ exception leaves.
/// - What a call makes is a handle, which belongs to the caller until reshard_release. Handles are counted and keep
/// what
///   they are made of, so they are released in any order. What is read from one (texts, addresses) lives as long as it.
/// - NULL where a handle or a text is needed is an error (RESHARD_USAGE); so is a handle of another kind.
/// - Handles do not change, so threads may share them; executors, what is bound to them, tickets and backends are used
///   by one thread at a time. There is no global state.
/// - Bytes, elements, devices and ranks are int64_t. A structure begins with its size; make it with its INITIALIZER.
#ifndef RESHARD_C_BASE_H
#define RESHARD_C_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Grows when a symbol or a field goes or changes its meaning; what is added does not change it.
#define RESHARD_ABI 1

/// RESHARD_ABI of the library that runs.
int32_t reshard_abi(void);
/// Of the library that runs: 0.2.0.
const char* reshard_version(void);

/// Why a call failed, coarse enough to switch on.
enum reshard_code {
    RESHARD_OK = 0,              ///< it did not
    RESHARD_SYNTAX = 1,          ///< text that does not parse
    RESHARD_MESH = 2,            ///< a mesh that is not one: empty name, size < 1, name used twice
    RESHARD_LAYOUT = 3,          ///< a layout that breaks an invariant: axis unknown or used twice
    RESHARD_OVERFLOW = 4,        ///< a product or sum that leaves 64 bits
    RESHARD_MISMATCH = 5,        ///< two things that must agree do not: shapes, dtypes, device counts, ranks, sizes
    RESHARD_STEP = 6,            ///< a step whose typing rule fails
    RESHARD_PLAN = 7,            ///< a plan that does not arrive, or whose judge says no
    RESHARD_INFEASIBLE = 8,      ///< a limit below what any plan needs
    RESHARD_UNSUPPORTED = 9,     ///< well formed, but not something this build or dtype can do
    RESHARD_IO = 10,             ///< a file that cannot be read or written
    RESHARD_USAGE = 11,          ///< a call that makes no sense: NULL, a handle of another kind, a size that is unknown
    RESHARD_BACKEND = 12,        ///< MPI, NCCL or a peer failed
    RESHARD_OUT_OF_MEMORY = 13,  ///< of this process
    RESHARD_INTERNAL = 14        ///< a defect of the library
};

/// syntax, mesh, ...; ok for 0, unknown for what is no ::reshard_code.
const char* reshard_code_name(int code);

/// What went wrong: a code, one sentence and, for text, the text and the first wrong place in it.
typedef struct reshard_error reshard_error;

int reshard_error_code(const reshard_error* error);             ///< a ::reshard_code; RESHARD_OK for NULL
const char* reshard_error_message(const reshard_error* error);  ///< one sentence; "" for NULL
const char* reshard_error_text(const reshard_error* error);     ///< the offending text; "" when there is none
int64_t reshard_error_offset(const reshard_error* error);       ///< byte offset of the first wrong place in the text
/// The sentence, and for text a second line with the text and a third with a caret under the place; "" for NULL.
const char* reshard_error_describe(const reshard_error* error);

/// Text that a call has made for people or for storing.
typedef struct reshard_text reshard_text;

const char* reshard_text_chars(const reshard_text* text);  ///< ends in 0; "" for NULL
int64_t reshard_text_bytes(const reshard_text* text);      ///< without the 0; 0 for NULL

/// One more owner of a handle of any kind; NULL has none. Returns the handle.
void* reshard_retain(void* handle);
/// One owner less of a handle of any kind; the last one frees it. NULL is left alone. What ranks made together
/// (backends and executors of communicators) all ranks release in the same order.
void reshard_release(const void* handle);

#ifdef __cplusplus
}
#endif

#endif
