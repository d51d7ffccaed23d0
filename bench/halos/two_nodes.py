#!/usr/bin/env python3
"""two_nodes.py MPIEXEC HALO_FILLS [EXTENTS HALO ROUNDS]: halo_fills over a link of a known rate.

Two network namespaces are the nodes, as in bench/two_nodes.py, with one rank each. Prints what halo_fills prints, and the
time that the bytes of a rank take at the rate of the link. Exits 77 if the tools or the privileges are missing."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import two_nodes  # noqa: E402

RATE = 125_000_000  # bytes a second, each way

if __name__ == "__main__":
    sys.exit(two_nodes.over_a_link(1, RATE, ["256,256,256", "1", "20"]))
