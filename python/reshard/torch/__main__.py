"""python -m reshard.torch FILE.py:FUNCTION explains the moves of a function on any number of ranks, in one process."""

from __future__ import annotations

import argparse
import logging
import runpy
import sys

from . import WasteError, explain
from ._versions import dist


def main(arguments: list[str] | None = None) -> int:
    """Returns 0; 1 if --waste-max is exceeded; 2 for wrong arguments."""
    parser = argparse.ArgumentParser(prog="python -m reshard.torch", description=__doc__)
    parser.add_argument("function", help="FILE.py:FUNCTION; the function takes no arguments and makes its meshes itself")
    parser.add_argument("--ranks", type=int, default=8, help="the number of ranks (8)")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="print one JSON object")
    shown.add_argument("--html", action="store_true", help="print one page")
    parser.add_argument("--waste-max", type=float, help="exit with 1 if torch receives more than so many times a plan's bytes")
    asked = parser.parse_args(arguments)
    file, colon, name = asked.function.rpartition(":")
    if not colon or not name.isidentifier():
        parser.error(f"{asked.function} names no function; FILE.py:FUNCTION is wanted")
    if asked.ranks < 1:
        parser.error(f"{asked.ranks} ranks; 1 or more are wanted")
    from torch.testing._internal.distributed.fake_pg import FakeStore
    logging.getLogger("torch").setLevel(logging.ERROR)
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=asked.ranks)
    try:
        functions = runpy.run_path(file)
        if not callable(functions.get(name)):
            parser.error(f"{file} has no function {name}")
        found = explain(functions[name])
    finally:
        dist.destroy_process_group()
    print(found.json() if asked.json else found.html() if asked.html else found)
    try:
        found.require(asked.waste_max if asked.waste_max is not None else float("inf"))
    except WasteError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
