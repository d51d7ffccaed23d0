"""Runs the Python of docs/torch.md unchanged in four processes, and its commands in one process."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(os.environ.get("RESHARD_ROOT", pathlib.Path(__file__).parents[3]))
PAGE = (ROOT / "docs/torch.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```python(?: file=(\S+))?\n(.*?)^```", re.S | re.M)
COMMAND = re.compile(r"^```console\n\$ python ([^\n]*)\n(.*?)^```", re.S | re.M)


GRAPH = "kept = reshard.torch.redistribute(x.requires_grad_(), [Shard(1), Shard(0)])\n"  # alive at exit: it may leak what it reaches


class Page(unittest.TestCase):
    def test_python(self):
        program = "\n".join(text for file, text in BLOCK.findall(PAGE) if not file)
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "page.py").write_text(program + GRAPH, encoding="utf-8")
            module = [sys.executable, "-m", "torch.distributed.run"]  # what the script torchrun runs
            command = re.search(r"^\$ torchrun ([^\n]* page\.py)$", PAGE, re.M)[1]
            done = subprocess.run([*module, *command.split()], cwd=folder, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("reshards; the program's"), 4)
        self.assertNotIn("leaked", done.stderr)

    def test_commands(self):
        with tempfile.TemporaryDirectory() as folder:
            for file, text in BLOCK.findall(PAGE):
                if file:
                    (pathlib.Path(folder) / file).write_text(text, encoding="utf-8")
            commands = COMMAND.findall(PAGE)
            self.assertTrue(commands)
            for command, printed in commands:
                done = subprocess.run([sys.executable, *command.split()], cwd=folder, capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stdout), (0, printed), done.stderr)


if __name__ == "__main__":
    unittest.main()
