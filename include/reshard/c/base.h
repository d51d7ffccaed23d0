/// \file
/// The rules that all calls of the C interface share: how a call answers, and who owns what.
///
/// - A call that can fail returns 0 or a ::reshard_code. It stores an error where its last argument points, unless that
///   is NULL. A call that fails stores NULL in place of a result. It prints nothing, and no C++ exception leaves it.
/// - A call returns new objects as handles, which belong to the caller until reshard_release. Handles are counted and
///   keep the objects that they are made of, so they can be released in any order. Texts and addresses read from a
///   handle live as long as the handle.
/// - A NULL in place of a handle or a text that is needed is an error (RESHARD_USAGE). A handle of another kind is,
/// too.
/// - Most handles never change, so threads may share them. Executors, bound buffers, tickets and backends are used by
///   one thread at a time. There is no global state.
/// - Bytes, elements, devices and ranks are int64_t. A structure begins with its size; make it with its INITIALIZER.
#ifndef RESHARD_C_BASE_H
#define RESHARD_C_BASE_H

#include "reshard/c/tables.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Grows when a symbol or a field goes or changes its meaning; what is added does not change it.
#define RESHARD_ABI 1

/// RESHARD_ABI of the library that runs.
int32_t reshard_abi(void);
/// The version of the library that runs: 0.2.0.
const char* reshard_version(void);

/// syntax, mesh, ...; ok for 0, unknown for a number that is no ::reshard_code.
const char* reshard_code_name(int code);

/// Why a call failed: a code, one sentence and, for text, the text and the first wrong place in it.
typedef struct reshard_error reshard_error;

int reshard_error_code(const reshard_error* error);             ///< a ::reshard_code; RESHARD_OK for NULL
const char* reshard_error_message(const reshard_error* error);  ///< one sentence; "" for NULL
const char* reshard_error_text(const reshard_error* error);     ///< the offending text, or ""
int64_t reshard_error_offset(const reshard_error* error);       ///< byte offset of the first wrong place in the text
/// The sentence; "" for NULL. For text two lines follow: the text, and a caret under the place.
const char* reshard_error_describe(const reshard_error* error);

/// Text that a call has made for people or for storing.
typedef struct reshard_text reshard_text;

const char* reshard_text_chars(const reshard_text* text);  ///< ends in 0; "" for NULL
int64_t reshard_text_bytes(const reshard_text* text);      ///< without the 0; 0 for NULL

/// One more owner of a handle of any kind; NULL has none. Returns the handle.
void* reshard_retain(void* handle);
/// One owner less of a handle of any kind; the last one frees it. NULL is left alone. All ranks release backends and
/// executors of communicators in the same order.
void reshard_release(const void* handle);

#ifdef __cplusplus
}
#endif

#endif
