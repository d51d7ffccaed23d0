// Says which question a process died of, or hangs at.
#pragma once

#include <string>

namespace reshard::test {

/// From now on a crash, an abort, a sanitizer's report, or half a minute of computing without another question prints
/// this line.
void watch(const std::string& line);

/// A crash is no longer any question's.
void watch_nothing();

}  // namespace reshard::test
