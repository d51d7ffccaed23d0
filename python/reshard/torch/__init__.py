"""Plans of reshard inside PyTorch: every redistribution of a DTensor takes the best way that is known.

    import reshard.torch
    y = reshard.torch.redistribute(x, [Shard(1), Shard(0)])     # for x.redistribute(placements=...), also to another mesh
    reshard.torch.install()                                     # explicit, implicit and backward moves of all DTensors
    with reshard.torch.installed(policy="bytes"): ...           # the same for a while
    print(reshard.torch.explain(step, batch))                   # every move of a step, torch's price and a plan's
"""

try:
    import torch as _torch
except ImportError as error:
    raise ImportError("reshard.torch needs PyTorch 2.6 or newer: pip install torch") from error

from .._waste import Explained, WasteError
from ._everywhere import install, installed, uninstall
from ._explain import Row, explain
from ._halo import halo
from ._move import redistribute, stats
from ._prices import Prices, calibrate

__all__ = ["Explained", "Prices", "Row", "WasteError", "calibrate", "explain", "halo", "install", "installed", "redistribute",
           "stats", "uninstall"]

for _name in set(__all__) - {"Explained", "WasteError"}:  # reshard.jax has these two as well
    globals()[_name].__module__ = __name__  # the name that users write
