#!/usr/bin/env python3
"""two_nodes.py MPIEXEC NODES_BENCH [ROWS COLUMNS ROUNDS]: a shuffled gather over a link of a known rate.

Two network namespaces are the nodes, as in bench/two_nodes.py, with four ranks each. Prints what nodes_bench prints, and
the time that the bytes of a node take at the rate of the link. Exits 77 if the tools or the privileges are missing."""

import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import two_nodes  # noqa: E402

RATE = 25_000_000  # bytes a second, each way


def main():
    mpiexec, program = sys.argv[1], os.path.abspath(sys.argv[2])
    asked = sys.argv[3:] or ["2048", "2048", "5"]
    two_nodes.end_on_signals()
    try:
        with tempfile.TemporaryDirectory() as folder, two_nodes.Nodes(folder, RATE, 2) as nodes:
            done = nodes.launch(mpiexec, 4, program, *asked)
    except two_nodes.Skip as reason:
        print(f"skipped: {reason}")
        return 77
    print(done.stdout + done.stderr, end="")
    received = re.search(r"receives at least (\d+) bytes", done.stdout)
    if done.returncode or not received:
        return 1
    print(f"which take {int(received[1]) / RATE:.4f} s at {RATE / 1e6:.0f} MB/s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
