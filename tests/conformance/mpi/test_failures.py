#!/usr/bin/env python3
"""test_failures.py MPIEXEC failing_rank CASE TRANSPORT: no rank hangs or reports good data when another fails."""

import subprocess
import sys
import tempfile
import time

RANKS = 4
SECONDS = 100  # well beyond the ranks' timeout of 2, far below a hang


def main(mpiexec, program, case, transport):
    recovered = case == "killed_recovered"
    if case == "lost" and transport not in ("shared", "sums"):
        print("skipped: a rank writes what messages bring into its own memory, which it has lost itself")
        return 77
    command = [mpiexec, "-n", str(RANKS)] + (["--enable-recovery"] if recovered else [])
    begin = time.monotonic()
    try:
        with tempfile.TemporaryDirectory() as marks:
            command += [program, case.removesuffix("_recovered"), transport, marks]
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired as expired:
        print(f"hangs: {(expired.stdout or b'').decode()}")
        return 1
    print(done.stdout, done.stderr, f"{time.monotonic() - begin:.1f} s, exit {done.returncode}", sep="\n")
    if recovered and "unrecognized" in done.stderr.lower() + done.stdout.lower():
        print("skipped: this MPI cannot go on without a rank")
        return 77
    lines = done.stdout.splitlines()
    first = [line for line in lines if " run 1: " in line]
    second = [line for line in lines if " run 2: " in line]
    others = RANKS - 1
    if len(first) < RANKS or any("good" not in line for line in first):
        print("wrong: the first run, before anything failed, is not good on all ranks")
        return 1
    if any(line.endswith("good") for line in second):
        print("wrong: good data after a failure")
        return 1
    intact = [line for line in lines if line.endswith(" memory: intact")]
    if transport.startswith("registered") and case != "killed" and len(intact) < others:
        print("wrong: memory that was registered is not the caller's again on every other rank")
        return 1
    if case == "killed":  # MPI ends the job; who is quick enough says why
        return 0 if done.returncode != 0 else 1
    if len([line for line in second if "rank 1" in line.split(": ", 1)[1]]) < others:
        print("wrong: not every other rank names the one that failed")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:5]))
