#!/usr/bin/env python3
"""two_nodes.py MPIEXEC SMALL_MOVES [RANKS [ROUNDS [CALLS [BYTES_MAX]]]]: small moves over a link of a known rate.

Two network namespaces are the nodes, as in bench/two_nodes.py, with RANKS ranks each (1). Prints the table of small_moves.
Exits 77 if the tools or the privileges are missing."""

import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import two_nodes  # noqa: E402

RATE = 125_000_000  # bytes a second, each way


def main(mpiexec, program, ranks=1, *arguments):
    two_nodes.end_on_signals()
    try:
        with tempfile.TemporaryDirectory() as folder, two_nodes.Nodes(folder, RATE, 2) as nodes:
            done = nodes.launch(mpiexec, int(ranks), os.path.abspath(program), *arguments)
    except two_nodes.Skip as reason:
        print(f"skipped: {reason}")
        return 77
    print(done.stdout + done.stderr, end="")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
