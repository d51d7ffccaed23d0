"""JAX's own names, as they were before everywhere() replaced them."""

from typing import Any

import jax

THEIRS = "taken_by_reshard"  # attribute of a replacement: JAX's own function


def _own(function: Any) -> Any:
    return getattr(function, THEIRS, function)


constrain = _own(jax.lax.with_sharding_constraint)
explicit_reshard = _own(jax.reshard)
put = _own(jax.device_put)
