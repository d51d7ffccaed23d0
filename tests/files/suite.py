"""A test case with its own folder, the tool as a process, and a seed that repeats the random choices."""

import os
import random
import subprocess
import sys
import tempfile
import unittest

try:
    import ml_dtypes  # noqa: F401
    import numpy as np
    import safetensors  # noqa: F401
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

TOOL = os.environ["RESHARD_TOOL"]
LONG = os.environ.get("RESHARD_LONG") == "1"
SEED = int(os.environ.get("RESHARD_SEED") or (random.SystemRandom().randrange(2**32) if LONG else 20261122))


class Case(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = self._folder.name
        self.addCleanup(self._folder.cleanup)
        self.rng = np.random.default_rng(SEED)

    def path(self, name):
        return os.path.join(self.folder, name)

    def text(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return name

    def command(self, *arguments):
        return subprocess.run([TOOL, *arguments], capture_output=True, text=True, cwd=self.folder, check=False,
                              env=dict(os.environ, NO_COLOR="1"), timeout=600)

    def runs(self, *arguments):
        done = self.command(*arguments)
        self.assertEqual(done.returncode, 0, f"{arguments}: {done.stderr}{done.stdout}")
        return done.stdout

    def refused(self, *arguments, code=2):
        done = self.command(*arguments)
        self.assertEqual(done.returncode, code, f"{arguments}: {done.stderr}{done.stdout}")
        self.assertEqual(done.stdout, "")
        self.assertTrue(done.stderr.startswith("reshard: "), done.stderr)
        return done.stderr


def main():
    unittest.main(verbosity=1)
