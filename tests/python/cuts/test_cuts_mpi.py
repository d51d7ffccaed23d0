"""Balanced cuts, flattened tiles and padding: moves on four ranks of MPI, against numpy."""

import os
import sys
import unittest

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import drawn_cuts
import four_ranks
import reshard


class Ranks(unittest.TestCase):
    def test_random_moves(self):
        from mpi4py import MPI
        comm = MPI.COMM_WORLD
        for source, target, fill in drawn_cuts.moves("mpi", 2000 if drawn_cuts.LONG else 100, comm.size):
            found = reshard.mpi.redistribute(comm, source.tile(comm.rank), source.layout, target.layout,
                                                fill=fill)
            what = f"{source.layout!r} to {target.layout!r}, rank {comm.rank}"
            self.assertEqual(found.tobytes(), target.tile(comm.rank).tobytes(), what)


Launched = four_ranks.launched()

if __name__ == "__main__":
    four_ranks.main()
