"""Plans of reshard inside JAX. One function replaces another, and no array is replicated on the way.

    import reshard.jax
    x = reshard.jax.reshard(x, P("x", None))      # for jax.lax.with_sharding_constraint and jax.reshard
    x = reshard.jax.device_put(x, sharding)       # for jax.device_put
    with reshard.jax.everywhere(): ...            # for programs that you do not want to edit
    u = reshard.jax.halo(u, P("x", "y"), width=1) # within jax.shard_map: the cells around the block, by permutes
    print(reshard.jax.explain(jax.jit(f), *args)) # every reshard of a program, its price, and the line to paste
    reshard.jax.program(jax.jit(f), *args, seconds=profile)  # XLA's order as tasks, to see how far it is from the bound
"""

try:
    import jax as _jax
except ImportError as error:
    raise ImportError("reshard.jax needs JAX: pip install jax") from error

import pathlib as _pathlib

from jax._src import source_info_util as _frames

for _file in _pathlib.Path(__file__).parent.glob("*.py"):
    _frames.register_exclusion(str(_file))  # so that programs name the line of the caller

from ._devices import device_put
from ._everywhere import everywhere
from ._explain import explain
from ._fallback import FallbackWarning
from ._halo import halo
from ._primitive import reshard
from ._report import Explained, Row, WasteError
from ._scheduled import Instruction, ScheduledProgram, program

__all__ = ["Explained", "FallbackWarning", "Instruction", "Row", "ScheduledProgram", "WasteError", "device_put", "everywhere",
           "explain", "halo", "program", "reshard"]

for _name in __all__:
    globals()[_name].__module__ = __name__  # the name that users write
