"""python -m reshard.calibrate_rows MODULE:FUNCTION prints the costs of a transport, for reshard.rows.choose_transfers.

FUNCTION() opens the transport and returns the arguments of reshard.rows.measure_costs: transfer, memory, remote_address.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from .rows import measure_costs


def main(arguments: Sequence[str]) -> int:
    """Returns the exit code: 0, or 2 for wrong arguments."""
    if len(arguments) != 1 or ":" not in arguments[0]:
        print(__doc__, file=sys.stderr)
        return 2
    module, name = arguments[0].split(":", 1)
    sys.path.insert(0, "")
    costs = measure_costs(*getattr(importlib.import_module(module), name)())
    for way, of_way in costs._asdict().items():
        for cost, seconds in of_way._asdict().items():
            print(f"{way} {cost} {seconds:.3g}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
