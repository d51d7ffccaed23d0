// The library's reader of .npy headers by its name here.
#pragma once

#include "files/formats/npy.hpp"

namespace reshard::cli {

using files::descr_of;
using files::dtype_of;
using files::Element;
using files::npy_header;
using files::npy_start_max;
using files::NpyHeader;
using files::parse_descr;
using files::parse_npy;

}  // namespace reshard::cli
