#include "bindings/c/answer.hpp"

using reshard::c::Handle;

extern "C" {

int32_t reshard_abi(void) { return RESHARD_ABI; }

const char* reshard_version(void) { return RESHARD_VERSION; }

const char* reshard_code_name(int code) {
    if (code == RESHARD_OK) return "ok";
    if (code == RESHARD_OUT_OF_MEMORY) return "out_of_memory";
    if (code == RESHARD_INTERNAL) return "internal";
    if (code < RESHARD_SYNTAX || code > RESHARD_BACKEND) return "unknown";
    return name(static_cast<reshard::Code>(code - 1)).data();  // a literal
}

int reshard_error_code(const reshard_error* error) { return error == nullptr ? RESHARD_OK : error->code; }

const char* reshard_error_message(const reshard_error* error) {
    return error == nullptr ? "" : error->error.message.c_str();
}

const char* reshard_error_text(const reshard_error* error) { return error == nullptr ? "" : error->error.text.c_str(); }

int64_t reshard_error_offset(const reshard_error* error) {
    return error == nullptr ? 0 : static_cast<int64_t>(error->error.offset);
}

const char* reshard_error_describe(const reshard_error* error) {
    return error == nullptr ? "" : error->described.c_str();
}

const char* reshard_text_chars(const reshard_text* text) { return text == nullptr ? "" : text->chars.c_str(); }

int64_t reshard_text_bytes(const reshard_text* text) { return text == nullptr ? 0 : std::ssize(text->chars); }

void* reshard_retain(void* handle) {
    if (handle != nullptr) static_cast<const Handle*>(handle)->retain();
    return handle;
}

void reshard_release(const void* handle) {
    if (handle != nullptr) static_cast<const Handle*>(handle)->release();
}

}  // extern "C"
