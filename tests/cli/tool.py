"""Runs the tool as a user would: a process, its two streams, its exit code."""

import os
import subprocess
import tempfile
import unittest

TOOL = os.environ["RESHARD_TOOL"]
MPIEXEC = os.environ.get("RESHARD_MPIEXEC", "")
SECONDS_MAX = 600  # an fsync may take minutes while the disk writes the output of a build
HERE = os.path.dirname(os.path.abspath(__file__))


class Ran:
    def __init__(self, done):
        self.code = done.returncode
        self.out = done.stdout.decode("utf-8", "replace")
        self.err = done.stderr.decode("utf-8", "replace")
        self.raw_out = done.stdout


def launched(ranks, *command):
    """A command on this many ranks."""
    return ended([MPIEXEC, "-n", str(ranks), *command])


def reshard(*arguments, stdin=b"", ranks=0, folder=None, timeout=SECONDS_MAX):
    command = [TOOL, *arguments]
    if ranks:
        command = [MPIEXEC, "-n", str(ranks), *command]
    return ended(command, stdin=stdin, folder=folder, timeout=timeout)


def ended(command, stdin=b"", folder=None, timeout=SECONDS_MAX):
    environment = dict(os.environ, NO_COLOR="1")
    return Ran(subprocess.run(command, input=stdin, capture_output=True, cwd=folder, env=environment, timeout=timeout))


class Case(unittest.TestCase):
    """A test case with its own folder."""

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = self._folder.name
        self.addCleanup(self._folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder, name)

    def ran_well(self, ran):
        self.assertEqual(ran.code, 0, ran.err + ran.out)
        return ran


def main():
    unittest.main(verbosity=1)
