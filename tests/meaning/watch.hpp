// Prints the question at which a process died or hangs.
#pragma once

#include <string>

namespace reshard::test {

/// From now on a crash, an abort, a sanitizer's report, or half a minute of CPU time without a new question prints this
/// line.
void watch(const std::string& line);

/// From now on a crash belongs to no question.
void watch_nothing();

}  // namespace reshard::test
