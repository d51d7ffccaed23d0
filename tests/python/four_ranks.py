"""A test file that starts itself on four ranks: its class Ranks runs there, on every rank, and Launched here."""

import os
import subprocess
import sys
import unittest

import reshard

RANKS = 4
MPIEXEC = os.environ.get("RESHARD_MPIEXEC", "")
INSIDE = "RESHARD_RANK_OF_TEST" in os.environ


def launched(seconds=None):
    """A test case that runs this program on the ranks; `seconds` until it is given up."""

    class Launched(unittest.TestCase):
        def test_four_ranks(self):
            ran = subprocess.run([MPIEXEC, "-n", str(RANKS), sys.executable, "-B", os.path.abspath(sys.argv[0])],
                                 env=dict(os.environ, RESHARD_RANK_OF_TEST="1"), capture_output=True, text=True,
                                 timeout=seconds)
            self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
            self.assertEqual(ran.stderr.count("OK\n"), RANKS, ran.stderr)

    return Launched


def main(**more):
    """Runs the tests, those of Ranks on a rank; 77 where there is no MPI to run them on."""
    if not INSIDE and not (MPIEXEC and reshard.mpi.available()):
        print("skipped: no MPI, or no mpi4py on it")
        sys.exit(77)
    return unittest.main(verbosity=1, defaultTest="Ranks" if INSIDE else "Launched", **more)
