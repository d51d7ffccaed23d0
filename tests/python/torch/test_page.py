"""Runs the Python of docs/torch.md unchanged on four gloo ranks, and its commands in one process."""

import contextlib
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import ranks

ROOT = pathlib.Path(os.environ.get("RESHARD_ROOT", pathlib.Path(__file__).parents[3]))
PAGE = (ROOT / "docs/torch.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```python(?: file=(\S+))?\n(.*?)^```", re.S | re.M)
COMMAND = re.compile(r"^```console\n\$ python ([^\n]*)\n(.*?)^```", re.S | re.M)


def page(rank):
    program = "\n".join(text for file, text in BLOCK.findall(PAGE) if not file)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(program, "docs/torch.md", "exec"), {})
    return printed.getvalue()


class Page(unittest.TestCase):
    def test_python(self):
        for printed in ranks.run(4, page):
            self.assertIn("reshards; the program's", printed)

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
