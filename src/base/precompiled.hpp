// Compiled once for the sources of all libraries (reshard_precompile). Do not include it. Each source includes the
// headers that it uses, because a build inside another project precompiles nothing.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tl/expected.hpp>
