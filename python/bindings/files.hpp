// Checkpoints between files and the ranks of a communicator, for the module reshard._mpi.
#pragma once

#include "python/bindings/errors.hpp"
#include "reshard/backends/backend.hpp"

namespace reshard::python {

/// The backend of the mpi4py communicator at this address.
[[nodiscard]] std::shared_ptr<Backend> backend_at(std::uintptr_t address);

void add_files(nb::module_& module);

}  // namespace reshard::python
