"""Runs a test file on four ranks: its class Ranks runs there, on every rank, and its class Launched runs here."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import reshard

RANKS = 4
MPIEXEC = os.environ.get("RESHARD_MPIEXEC", "")
INSIDE = "RESHARD_RANK_OF_TEST" in os.environ
PASSED = "this rank passed\n"
ROOT = pathlib.Path(os.environ.get("RESHARD_ROOT", pathlib.Path(__file__).parents[2]))
BLOCK = re.compile(r"^```python file=(\S+)\n(.*?)^```", re.S | re.M)
COMMAND = re.compile(r"^```console\n\$ (mpirun [^\n]*)\n(.*?)^```", re.S | re.M)


def launched(seconds=None):
    """A test case that runs this program on the ranks, for at most `seconds`."""

    class Launched(unittest.TestCase):
        def test_four_ranks(self):
            ran = subprocess.run([MPIEXEC, "-n", str(RANKS), sys.executable, "-B", os.path.abspath(sys.argv[0])],
                                 env=dict(os.environ, RESHARD_RANK_OF_TEST="1"), capture_output=True, text=True,
                                 timeout=seconds)
            self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
            self.assertEqual(ran.stdout.count(PASSED), RANKS, ran.stdout + ran.stderr)

    return Launched


def run_page(case, name):
    """Writes the python blocks of docs/NAME that have a file name, and runs its mpirun commands. `case` compares what they print."""
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    environment = dict(os.environ, PATH=f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}",
                       OMPI_MCA_rmaps_base_oversubscribe="1")
    with tempfile.TemporaryDirectory() as folder:
        for file, text in BLOCK.findall(page):
            (pathlib.Path(folder) / file).write_text(text, encoding="utf-8")
        commands = COMMAND.findall(page)
        case.assertGreaterEqual(len(commands), 1)
        for command, printed in commands:
            done = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True,
                                  timeout=600, check=False)
            case.assertEqual(done.returncode, 0, done.stderr)
            case.assertEqual(done.stdout, printed)


def main():
    """Runs the tests, on a rank the tests of Ranks. Exits 77 if there is no MPI. A rank that fails ends all ranks."""
    if not INSIDE and not (MPIEXEC and reshard.mpi.available()):
        print("skipped: no MPI, or no mpi4py on it")
        sys.exit(77)
    ran = unittest.main(verbosity=1, defaultTest="Ranks" if INSIDE else "Launched", failfast=True, exit=False).result
    passed = ran.testsRun > 0 and ran.wasSuccessful()
    if INSIDE and passed:
        os.write(1, PASSED.encode())  # a single write, since four ranks would mix the parts of unittest's last line
    elif INSIDE:
        from mpi4py import MPI
        sys.stderr.flush()
        MPI.COMM_WORLD.Abort(1)
    sys.exit(not passed)
