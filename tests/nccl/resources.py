#!/usr/bin/env python3
"""The device resources of each kernel: resources.py NVCC SOURCE_ROOT [sm_80 sm_90 ...]. Compiles the kernels for each
architecture with ptxas's report, and prints registers, shared memory and spills of every kernel. Exits 1 if a kernel spills, or
takes so many registers that fewer than four blocks fit a multiprocessor. One architecture takes about a minute, so only the
second is compiled unless RESHARD_LONG=1. It needs no device and measures no time."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

REGISTERS_MAX = 64  # 65536 of a multiprocessor / (4 blocks x 256 threads)
KERNEL = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")


def report(nvcc, root, architecture):
    """(kernel, registers, shared, spills) for one architecture."""
    with tempfile.TemporaryDirectory() as folder:
        command = [nvcc, "-std=c++20", "-O3", "--fmad=false", f"-arch={architecture}", "-Xptxas", "-v", "-cubin",
                   f"-I{root}", f"{root}/backends/nccl/kernels/kernels.cu", "-o", f"{folder}/kernels.cubin"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    rows, name, spills = [], None, 0
    for line in done.stderr.splitlines():
        if found := KERNEL.search(line):
            name = found.group(1)
        elif found := SPILLS.search(line):
            spills = sum(map(int, found.groups()))
        elif (found := USED.search(line)) and name:
            shared = SHARED.search(line)
            rows.append((name, int(found.group(1)), int(shared.group(1)) if shared else 0, spills))
            name = None
    return sorted(rows)


def main(arguments):
    nvcc, root, architectures = arguments[0], pathlib.Path(arguments[1]), arguments[2:] or ["sm_80", "sm_90"]
    if os.environ.get("RESHARD_LONG") != "1":
        architectures = architectures[1:2] or architectures
    bad = 0
    for architecture in architectures:
        rows = report(nvcc, root, architecture)
        if not rows:
            raise SystemExit(f"{architecture}: ptxas reported no kernel")
        print(f"{architecture}: {len(rows)} kernels, at most {max(row[1] for row in rows)} registers, "
              f"{max(row[2] for row in rows)} bytes of shared memory, {sum(row[3] for row in rows)} bytes spilled")
        for name, registers, shared, spills in rows:
            wrong = spills > 0 or registers > REGISTERS_MAX
            bad += wrong
            print(f"  {name:28} {registers:3} registers {shared:6} B shared {spills:3} B spilled{'  <--' if wrong else ''}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
