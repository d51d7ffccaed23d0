// Prepared, bound and running lists, as the executor sees them.
#pragma once

#include "backends/nccl/prepare/prepared.hpp"

namespace reshard::nccl {

[[nodiscard]] std::unique_ptr<Prepared> prepared(std::unique_ptr<Ready> ready);

}  // namespace reshard::nccl
