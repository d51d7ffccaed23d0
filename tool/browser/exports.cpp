// The functions that the page calls. Only the build for the browser compiles this file.
#include <emscripten.h>

#include "tool/browser/answers.hpp"

namespace {

// The page copies an answer before it asks again.
const char* kept(std::string text) {
    static std::string answer;
    answer = std::move(text);
    return answer.c_str();
}

}  // namespace

extern "C" {

EMSCRIPTEN_KEEPALIVE const char* reshard_question(const char* question) {
    return kept(reshard::cli::answer_question(question));
}

EMSCRIPTEN_KEEPALIVE const char* reshard_log(const char* log) { return kept(reshard::cli::answer_log(log)); }

}  // extern "C"
