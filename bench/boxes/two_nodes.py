#!/usr/bin/env python3
"""two_nodes.py MPIEXEC NODES_BENCH [ROWS COLUMNS ROUNDS]: a shuffled gather over a link of a known rate.

Two network namespaces are the nodes, as in bench/two_nodes.py, with four ranks each. Prints what nodes_bench prints, and
the time that the bytes of a node take at the rate of the link. Exits 77 if the tools or the privileges are missing."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import two_nodes  # noqa: E402

RATE = 25_000_000  # bytes a second, each way

if __name__ == "__main__":
    sys.exit(two_nodes.over_a_link(4, RATE, ["2048", "2048", "5"]))
