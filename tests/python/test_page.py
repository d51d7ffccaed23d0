"""Runs every line of Python in docs/python.md and README unchanged: sessions with doctest, files under their names, and commands
on these files."""

import doctest
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import reshard

ROOT = pathlib.Path(os.environ.get("RESHARD_ROOT", pathlib.Path(__file__).parents[2]))
PAGE = (ROOT / "docs/python.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```", re.S | re.M)


class Page(unittest.TestCase):
    def test_sessions(self):
        lines = "".join(text + "\n" for kind, file, text in BLOCK.findall(PAGE) if kind == "python" and not file)
        flags = doctest.NORMALIZE_WHITESPACE | doctest.REPORT_NDIFF
        session = doctest.DocTestParser().get_doctest(lines, {}, "docs/python.md", "docs/python.md", 0)
        said = []
        ran = doctest.DocTestRunner(optionflags=flags).run(session, out=said.append)
        self.assertEqual(ran.failed, 0, "".join(said))
        self.assertGreater(ran.attempted, 15)

    def test_what_other_pages_show_of_the_files(self):
        files = "".join(text for _, file, text in BLOCK.findall(PAGE) if file)
        shown = [text for kind, _, text in BLOCK.findall((ROOT / "docs/memory.md").read_text(encoding="utf-8"))
                 if kind == "python"]
        self.assertEqual(len(shown), 1)
        self.assertIn(shown[0], files)

    def test_the_example_of_the_readme(self):
        if not reshard.mpi.available():
            self.skipTest("no MPI, or no mpi4py on it")
        lines, = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S | re.M)
        program = ("import numpy as np\nfrom mpi4py import MPI\nimport reshard\n"
                   "comm, n = MPI.COMM_WORLD, 6\nmesh = reshard.Mesh({'ranks': 1})\n"
                   f"rows = np.arange(36.0).reshape(6, 6)\n{lines}assert (columns == rows).all()\n")
        ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("lower bound", ran.stdout)

    def test_files_and_commands(self):
        if not reshard.mpi.available():
            self.skipTest("no MPI, or no mpi4py on it")
        blocks = BLOCK.findall(PAGE)
        environment = dict(os.environ, PATH=f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}")
        with tempfile.TemporaryDirectory() as folder:
            for _, file, text in blocks:
                if file:
                    (pathlib.Path(folder) / file).write_text(text, encoding="utf-8")
            ran = 0
            for _, command, printed in re.findall(r"^```(console)\n\$ (mpirun [^\n]*)\n(.*?)^```", PAGE, re.S | re.M):
                done = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True,
                                      timeout=120, check=False)
                self.assertEqual((done.returncode, done.stdout), (0, printed), done.stderr)
                ran += 1
        self.assertEqual(ran, 2)


if __name__ == "__main__":
    unittest.main(verbosity=1)
