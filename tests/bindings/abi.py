#!/usr/bin/env python3
"""Compares the exports of the C libraries and the sizes of their structures with the table of their ABI:
abi.py TABLE SIZES_PROGRAM LIBRARY.so... --write writes the table again.

If a line goes or changes, the ABI is another one: raise RESHARD_ABI in include/reshard/c/base.h. A new line is only added to
the table."""

import pathlib
import re
import subprocess
import sys


NAME = re.compile(r"lib\w+ (reshard_\w+|p[sdczi]gemr2d_|Cp[sdczi]gemr2d)$")


def exported(library):
    """The defined dynamic symbols of a library, without the linker's own."""
    listed = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    name = re.match(r"lib\w+", pathlib.Path(library).name).group(0)
    symbols = [line.split()[-1].partition("@")[0] for line in listed.splitlines() if " A " not in line]
    return sorted(f"{name} {symbol}" for symbol in symbols)


def part(line):
    """The library of a line."""
    for name, words in (("mpi", "mpi"), ("nccl", "nccl"), ("live", "live"), ("files", "files|checkpoint|schedule_options|task_run")):
        if re.search(rf" reshard_({words})[_ .]", line):
            return f"libreshard_c_{name}"
    return line.split()[0] if line.startswith("lib") else "libreshard_c"


def main(arguments):
    write = "--write" in arguments
    table, sizes, *libraries = [argument for argument in arguments if argument != "--write"]
    found = subprocess.run([sizes], check=True, capture_output=True, text=True).stdout.splitlines()
    for library in libraries:
        found += exported(library)
    if write:
        pathlib.Path(table).write_text("\n".join(found) + "\n", encoding="utf-8")
    built = {line.split()[0] for line in found if line.startswith("lib")}
    expected = [line for line in pathlib.Path(table).read_text(encoding="utf-8").splitlines() if part(line) in built]
    for line in sorted(set(expected) - set(found)):
        print(f"gone: {line}")
    for line in sorted(set(found) - set(expected)):
        print(f"not in the table: {line}")
    strange = [line for line in found if line.startswith("lib") and not NAME.match(line)]
    for line in strange:
        print(f"no name of the interface: {line}")
    print(f"{len(found)} lines")
    return 1 if set(found) != set(expected) or strange else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
