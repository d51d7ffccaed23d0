"""JAX's own names, as they were before everywhere() took their places."""

from typing import Any

import jax

THEIRS = "taken_by_reshard"  # attribute of what stands in such a place: JAX's own


def _own(function: Any) -> Any:
    return getattr(function, THEIRS, function)


constrain = _own(jax.lax.with_sharding_constraint)
explicit_reshard = _own(jax.reshard)
put = _own(jax.device_put)
