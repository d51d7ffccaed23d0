"""Cuts, flattened tiles, casts, transpositions and padding: moves on four ranks of MPI, against numpy."""

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
        for number, move in enumerate(drawn_cuts.moves("mpi", 2000 if drawn_cuts.LONG else 100, comm.size)):
            for _ in range(2 if number % 8 == 0 else 1):  # the second call finds what the first one prepared
                found = reshard.mpi.redistribute(comm, move.source.tile(comm.rank), move.source.layout, move.target.layout,
                                                 move.target.blank(comm.rank), **move.options)
                self.assertEqual(found.tobytes(), move.target.tile(comm.rank).tobytes(), (move.text, comm.rank))


Launched = four_ranks.launched()

if __name__ == "__main__":
    four_ranks.main()
