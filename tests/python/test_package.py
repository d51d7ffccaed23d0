"""The installed wheel: its files, its stubs and docstrings, its cost per call, and its behaviour if there is no MPI."""

import ast
import importlib.metadata
import inspect
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import reshard

HERE = pathlib.Path(reshard.__file__).parent
ROOT = pathlib.Path(os.environ.get("RESHARD_ROOT", pathlib.Path(__file__).parents[2]))


def public(owner):
    """The public names of a module or a class."""
    names = getattr(owner, "__all__", None) or [name for name in vars(owner) if not name.startswith("_")]
    return [(name, getattr(owner, name)) for name in names]


class Package(unittest.TestCase):
    def test_one_number_for_library_and_package(self):
        said = re.search(r"project\(reshard VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))
        self.assertEqual(importlib.metadata.version("reshard"), said.group(1))

    def test_one_wheel_for_every_python_from_310_on(self):
        wheel = importlib.metadata.distribution("reshard").read_text("WHEEL")
        self.assertRegex(wheel, r"Tag: cp310-abi3-linux")
        self.assertTrue((HERE / "py.typed").is_file())

    def test_every_module_has_a_stub_that_knows_its_names(self):
        for module in HERE.glob("_*.abi3.so"):
            name = module.name.split(".")[0]
            stub = ast.parse((HERE / f"{name}.pyi").read_text(encoding="utf-8"))
            known = {node.name for node in stub.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
            known |= {node.target.id for node in stub.body if isinstance(node, ast.AnnAssign)}
            built = getattr(__import__(f"reshard.{name}"), name)
            self.assertEqual({one for one in vars(built) if not one.startswith("_")} - known, set())
        stub = (HERE / "_core.pyi").read_text(encoding="utf-8")
        self.assertIn("def synthesize(source: Layout, target: Layout, *, objective: str = 'time'", stub)
        self.assertIn("machine: Machine | str | None = None", stub)

    def test_every_public_name_says_what_it_is(self):
        silent = []
        for owner in (reshard, reshard.mpi, reshard.nccl, reshard.errors):
            for name, value in public(owner):
                if inspect.ismodule(value) or not callable(value) or getattr(value, "__module__", "").startswith("typing"):
                    continue
                if not value.__doc__:
                    silent.append(name)
                if inspect.isclass(value) and not issubclass(value, BaseException):
                    silent += [f"{name}.{one}" for one, member in public(value) if not getattr(member, "__doc__", None)]
        self.assertEqual(silent, [])

    def test_a_remembered_plan_is_cheap(self):
        mesh = reshard.Mesh({"x": 2, "y": 4})
        source, target = reshard.parse_layout(mesh, "f32[8192@x,8192@y]"), reshard.parse_layout(mesh, "f32[8192@y,8192@x]")
        best = float("inf")
        for _ in range(20):
            begin = time.process_time()
            for _ in range(100):
                reshard.synthesize(source, target)
            best = min(best, (time.process_time() - begin) / 100)
        self.assertLess(best, 100e-6)  # 10 us, on a machine with other work and a library without optimization

    def test_importing_it_brings_no_nccl(self):
        """Otherwise torch, imported later, would find the system's libnccl instead of its own."""
        program = "import sys, reshard; sys.exit('reshard._nccl' in sys.modules)"
        subprocess.run([sys.executable, "-c", program], check=True)

    def test_without_mpi_it_plans_and_moves_here_and_says_so_under_mpi(self):
        program = """
import reshard
source, target = reshard.parse_layout("x=2", "f32[4@x,2]"), reshard.parse_layout("x=2", "f32[4,2@x]")
print(len(reshard.synthesize(source, target).steps), len(reshard.schedule_rows(source, target, 0)))
tiles = reshard.local(2).redistribute([reshard.empty_tile(source, rank) for rank in range(2)], source, target)
print(reshard.mpi.available(), reshard.nccl.available())
for door in (reshard.mpi, reshard.nccl):
    try:
        door.redistribute(0, tiles[0], source, target)
    except reshard.UnsupportedError as error:
        print(error)
"""
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(HERE, pathlib.Path(folder) / "reshard", ignore=shutil.ignore_patterns("_mpi.*", "_nccl.*"))
            ran = subprocess.run([sys.executable, "-c", program], env=dict(os.environ, PYTHONPATH=folder), cwd=folder,
                                 capture_output=True, text=True, check=True)
        lines = ran.stdout.splitlines()
        self.assertEqual(lines[:2], ["1 2", "False False"])
        self.assertIn("this build of reshard has no MPI", lines[2])
        self.assertIn("this build of reshard has no NCCL", lines[3])


if __name__ == "__main__":
    unittest.main(verbosity=1)
