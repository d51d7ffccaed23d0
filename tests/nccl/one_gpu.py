#!/usr/bin/env python3
"""Several ranks on one real GPU: one_gpu.py BUILD_FOLDER. Compares the device copies with the host's, and times them beside the
device's own. Runs the conformance suite and runs in pieces over the real NCCL: with ranks as processes, each with its own host
id (any NCCL), and as threads of one process if NCCL lets ranks share a device (2.30.3 or newer). Prints pass or fail for each
case and ends with the number of failures, in under 5 minutes. If there is no GPU, it says so and exits 77.

Ranks on one device show that NCCL accepts the calls and that the kernels are right. They do not show the speed between
devices."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

SECONDS_MAX = 290
SHARED_DEVICE = {"CUDA_DEVICE_MAX_CONNECTIONS": "32", "CUDA_MODULE_LOADING": "EAGER", "NCCL_MAX_CTAS": "2"}
ONE_HOST = {"NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1", "NCCL_MNNVL_ENABLE": "0"}


def tail(text):
    return "".join(f"      {line}\n" for line in text.splitlines()[-15:])


def finish(processes, seconds):
    """(true if all ended with 0, their output)."""
    end, said, good = time.monotonic() + max(seconds, 1), "", True
    for process in processes:
        try:
            said += process.communicate(timeout=max(1, end - time.monotonic()))[0]
            good = good and process.returncode == 0
        except subprocess.TimeoutExpired:
            good, said = False, said + "it did not come to an end\n"
            process.kill()
            process.communicate()
    return good, said


def start(command, **environment):
    return subprocess.Popen([str(part) for part in command], env={**os.environ, **environment}, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def ranks_as_processes(program, ranks, *more):
    with tempfile.TemporaryDirectory() as folder:
        return finish([start([program, f"--ranks={ranks}", f"--rank={rank}", f"--meet={folder}/id", *more],
                             NCCL_HOSTID=f"rank{rank}", **SHARED_DEVICE, **ONE_HOST) for rank in range(ranks)], 70)


def ranks_as_threads(program, ranks, *more):
    return finish([start([program, f"--ranks={ranks}", *more], NCCL_MULTI_RANK_GPU_ENABLE="1", **SHARED_DEVICE)], 60)


def main(arguments):
    build = pathlib.Path(arguments[0] if arguments else "build/dev")
    tests, begun = build / "tests/nccl", time.monotonic()
    suite = tests / "conformance_nccl"
    done = subprocess.run([build / "bench/nccl_copies"], capture_output=True, text=True, timeout=120, check=False)
    print(done.stdout, end="")
    if done.returncode == 77:
        print("skipped: no GPU here: what only a device can show is unmeasured")
        return 77
    cases = [("copies beside the device's", lambda: (done.returncode == 0, done.stderr)),
             ("copies and folds, every element", lambda: finish([start([tests / "nccl_copies_test"])], 60))]
    for ranks in (2, 4):
        cases.append((f"conformance, {ranks} processes", lambda n=ranks: ranks_as_processes(suite, n)))
    cases.append(("conformance in pieces, 2 processes", lambda: ranks_as_processes(suite, 2, "--staging=4096")))
    pieces = tests / "pieces_nccl"
    for ranks in (2, 4):
        cases.append((f"pieces on streams, {ranks} processes", lambda n=ranks: ranks_as_processes(pieces, n)))
    cases.append(("moves that cast, transpose and pad, 2 processes",
                  lambda: ranks_as_processes(tests / "changes_nccl", 2, "--device")))
    cases.append(("conformance, 2 threads (NCCL 2.30.3 or newer)", lambda: ranks_as_threads(suite, 2)))
    cases.append(("pieces on streams, 2 threads (NCCL 2.30.3 or newer)", lambda: ranks_as_threads(pieces, 2)))
    cases.append(("starts and graphs, 4 threads (NCCL 2.30.3 or newer)",
                  lambda: finish([start([tests / "nccl_start_test"], NCCL_MULTI_RANK_GPU_ENABLE="1",
                                        **SHARED_DEVICE)], 60)))
    failed = 0
    for name, run in cases:
        if time.monotonic() - begun > SECONDS_MAX:
            print(f"fail  {name}: no time left")
            failed += 1
            continue
        good, said = run()
        refused = not good and "NCCL 2.30" in name and "Duplicate GPU" in said + os.environ.get("NCCL_DEBUG", "")
        print(f"{'pass' if good else 'n/a ' if refused else 'fail'}  {name}")
        if not good and not refused:
            failed += 1
            print(tail(said), end="")
    print(f"{len(cases)} cases, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
