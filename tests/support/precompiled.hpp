// Compiled once for the sources of all test programs (reshard_precompile); see src/base/precompiled.hpp.
#pragma once

#include <fstream>
#include <iostream>
#include <random>
#include <thread>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "src/base/precompiled.hpp"
