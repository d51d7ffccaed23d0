#!/usr/bin/env python3
"""Adds two element types to a copy of the tree, as docs/HACKING.md describes: add_dtype.py ROOT BUILD.

f8_e3m4 only moves and is cast; i16x can also be reduced. The test checks that few files change, that the files that use
the table then compile, and that they do not compile if an edit is missing. With RESHARD_LONG it also builds the copy and
runs its unit tests. BUILD holds compile_commands.json. Exit code 77: BUILD has none."""

import contextlib
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

FILES_MAX = 8
EDITS = {  # file: (old text, new text)
    "include/reshard/layout.hpp": ("c64, c128 };", "c64, c128, f8_e3m4, i16x };"),
    "src/tables/dtypes.def": (
        '"complex<f64>")',
        '"complex<f64>") \\\n'
        'BYTES(f8_e3m4, E3M4, MPI_DATATYPE_NULL, ncclNumTypes, "f8_e3m4", "float8_e3m4", floating, 1, 4, "", 7, "", "", "f8E3M4") \\\n'
        'X(i16x, Integer<std::int16_t>, MPI_INT16_T, ncclNumTypes, "i16x", "int16x", signed_integer, 2, 0, "", 200, "", "", "")'),
    "src/copy/eighth.hpp": ("using E5M2 = Eighth<2, false>;", "using E5M2 = Eighth<2, false>;\nusing E3M4 = Eighth<4, false>;"),
}
# Files that use the table, each with a target whose flags compile it.
USERS = {
    "src/layout/layout.cpp": "reshard_core",
    "src/copy/cast.cpp": "reshard_core",
    "src/copy/combine.cpp": "reshard_core",
    "src/emit/stablehlo.cpp": "reshard_core",
    "files/base/cast.cpp": "reshard_files",
    "files/formats/zarr.cpp": "reshard_files",
    "tool/data/exact_values.cpp": "reshard_tool",
    "backends/mpi/messages/datatype.cpp": "reshard_mpi",
    "backends/baseline/reductions.cpp": "reshard_mpi",
    "backends/nccl/prepare/native_collective.cpp": "reshard_nccl",
    "backends/nccl/kernels/select_kernel.cpp": "reshard_nccl",
}
# For each edit, a file that does not compile without it.
NEEDS = {"include/reshard/layout.hpp": "src/layout/layout.cpp", "src/tables/dtypes.def": "src/layout/layout.cpp",
         "src/copy/eighth.hpp": "src/copy/cast.cpp"}
COPIED = ("include", "src", "synth", "backends", "files", "report", "tool", "bindings", "python", "tests", "bench", "proofs",
          "packaging", "cmake", "docs", "CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md", "CITATION.cff")


def flags_of(commands, target):
    """Compiler, and the flags that matter to a syntax check, of some C++ file of a target; None if it has no file."""
    for command in commands:
        words = shlex.split(command["command"])
        if f"/{target}.dir/" not in command["command"] or not command["file"].endswith((".cpp", ".cxx")):
            continue
        kept = [words[1] if words[0].endswith("ccache") else words[0]]
        for word, after in zip(words, [*words[1:], ""]):
            if word == "-isystem":
                kept += [word, after]
            elif word.startswith(("-I", "-D", "-std=", "-W")) and word != "-Winvalid-pch":
                kept.append(word)
        return kept
    return None


def compiles(root, copy, flags, name):
    """Whether a file of the copy compiles, and what the compiler says."""
    own = [flag.replace(f"{root}/", f"{copy}/").replace(f"-I{root}", f"-I{copy}") if "/build/" not in flag else flag for flag in flags]
    ran = subprocess.run([*own, "-fsyntax-only", str(copy / name)], capture_output=True, text=True, check=False)
    return ran.returncode == 0, ran.stderr


def apply(copy, name):
    """Makes one edit. Its old text must be there once."""
    old, new = EDITS[name]
    text = (copy / name).read_text(encoding="utf-8")
    if text.count(old) != 1:
        raise SystemExit(f"{name} does not have {old!r} once")
    (copy / name).write_text(text.replace(old, new), encoding="utf-8")


@contextlib.contextmanager
def without(copy, name):
    """The copy without one edit."""
    edited = (copy / name).read_text(encoding="utf-8")
    old, new = EDITS[name]
    (copy / name).write_text(edited.replace(new, old), encoding="utf-8")
    yield
    (copy / name).write_text(edited, encoding="utf-8")


def built(copy):
    """Builds the copy and runs its unit tests."""
    build = copy / "build"
    parts = ("NCCL", "C", "FORTRAN", "BENCH", "PEERS", "PROOFS", "PYTHON")
    subprocess.run(["cmake", "-S", copy, "-B", build, "-G", "Ninja", "-D", "CMAKE_BUILD_TYPE=Debug", "-D", "CMAKE_CXX_FLAGS=-O0",
                    *(word for part in parts for word in ("-D", f"RESHARD_{part}=OFF"))], check=True)
    subprocess.run(["cmake", "--build", build, "--parallel", str(os.cpu_count() or 1)], check=True)
    subprocess.run(["ctest", "--test-dir", build, "-L", "unit", "--output-on-failure"], check=True)


def main():
    root, build = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    if not (build / "compile_commands.json").is_file():
        raise SystemExit(77)
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    wrong = [] if len(EDITS) <= FILES_MAX else [f"{len(EDITS)} files change, at most {FILES_MAX}"]
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder).resolve() / "tree"
        copy.mkdir()
        for name in COPIED:
            if (root / name).is_dir():
                shutil.copytree(root / name, copy / name, ignore=shutil.ignore_patterns("build", "__pycache__"))
            elif (root / name).exists():
                shutil.copy(root / name, copy / name)
        for name in EDITS:
            apply(copy, name)
        checked = 0
        for name, target in USERS.items():
            flags = flags_of(commands, target)
            if flags is None:
                continue  # not part of this build
            good, said = compiles(root, copy, flags, name)
            checked += 1
            if not good:
                wrong.append(f"{name} does not compile:\n{said}")
        for name, user in NEEDS.items():
            flags = flags_of(commands, USERS[user])
            if flags is None:
                continue
            with without(copy, name):
                if compiles(root, copy, flags, user)[0]:
                    wrong.append(f"{user} compiles without the edit of {name}")
        if os.environ.get("RESHARD_LONG"):
            built(copy)
    print(f"{len(EDITS)} files change: {', '.join(EDITS)}; {checked} files that use the table were compiled")
    print(*wrong, sep="\n", end="")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
