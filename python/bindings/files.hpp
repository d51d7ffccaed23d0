// Checkpoints between files and the ranks of a communicator, for the module reshard._mpi.
#pragma once

#include "python/bindings/errors.hpp"

namespace reshard::python {

void add_files(nb::module_& module);

}  // namespace reshard::python
