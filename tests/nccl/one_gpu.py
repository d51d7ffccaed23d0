#!/usr/bin/env python3
"""Several ranks on one real GPU: one_gpu.py BUILD_FOLDER. Times the device's copies, casts and sums beside its own copy, and
compares every element with the host's. Then it runs the conformance suite, pieces, halos, moves that change the array, and
starts and graphs over the real NCCL. The ranks are processes, each with its own host id, since NCCL refuses two ranks of one
host on a device. With torch and the Python package it moves torch's arrays, too. Prints pass or fail for each case and ends
with the number of failures, in about ten minutes. If there is no GPU, it says so and exits 77.

Ranks on one device show that NCCL accepts the calls and that the kernels are right. They do not show the speed between
devices."""

import functools
import os
import pathlib
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
ENVIRONMENT = {"CUDA_DEVICE_MAX_CONNECTIONS": "32", "CUDA_MODULE_LOADING": "EAGER", "NCCL_MAX_CTAS": "2",
               "NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1", "NCCL_MNNVL_ENABLE": "0"}


def tail(text):
    return "".join(f"      {line}\n" for line in text.splitlines()[-15:])


def finish(processes, seconds):
    """(the worst exit code, what they printed)."""
    end, said, worst = time.monotonic() + seconds, "", 0
    for process in processes:
        try:
            said += process.communicate(timeout=max(1, end - time.monotonic()))[0]
            worst = worst or process.returncode
        except subprocess.TimeoutExpired:
            process.kill()
            said += process.communicate()[0] + f"it did not come to an end in {seconds} s\n"
            worst = 1
    return worst, said


def start(command, **environment):
    return subprocess.Popen([str(part) for part in command], env={**os.environ, **environment}, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def ranks_as_processes(seconds, ranks, command):
    with tempfile.TemporaryDirectory() as folder:
        return finish([start(command, RESHARD_RANK=str(rank), RESHARD_MEET=f"{folder}/id",
                             NCCL_HOSTID=f"rank{rank}", **ENVIRONMENT) for rank in range(ranks)], seconds)


def main(arguments):
    build = pathlib.Path(arguments[0] if arguments else "build/dev")
    tests, seconds = build / "tests/nccl", 60
    done = subprocess.run([build / "bench/nccl_copies"], capture_output=True, text=True, timeout=120, check=False)
    print(done.stdout, end="", flush=True)
    if done.returncode == SKIPPED:
        print("skipped: no GPU here: what only a device can show is unmeasured")
        return SKIPPED
    here = pathlib.Path(__file__).resolve().parent
    cases = [("copies beside the device's", lambda: (done.returncode, done.stderr)),
             ("copies and folds, every element", lambda: finish([start([tests / "nccl_copies_test"])], seconds))]
    for name, limit, program, ranks, *more in (
            ("conformance", 150, "conformance_nccl", 2), ("conformance", 300, "conformance_nccl", 4),
            ("conformance in pieces", 150, "conformance_nccl", 2, "--staging=4096"),
            ("pieces on streams", seconds, "pieces_nccl", 2), ("pieces on streams", 2 * seconds, "pieces_nccl", 4),
            ("halos", seconds, "halos_nccl", 2, "--gtest_filter=Halos.*"),
            ("halos", 2 * seconds, "halos_nccl", 4, "--gtest_filter=Halos.*"),
            ("moves that cast, transpose and pad", seconds, "changes_nccl", 2, "--device"),
            ("starts and graphs", 2 * seconds, "nccl_start_test", 4)):
        cases.append((f"{name}, {ranks} ranks", functools.partial(ranks_as_processes, limit, ranks,
                                                                          [tests / program, f"--ranks={ranks}", *more])))
    for ranks in (2, 4):
        cases.append((f"arrays of torch, {ranks} ranks",
                      lambda n=ranks: finish([start([sys.executable, "-B", here / "one_gpu_python.py", n])],
                                           2 * seconds)))
    cases.append(("reshard.torch beside torch, 2 and 4 ranks", lambda: finish(
        [start([sys.executable, "-B", here.parent / "python/torch/one_gpu.py"])], 2 * seconds)))
    failed = 0
    for name, run in cases:
        begun = time.monotonic()
        code, said = run()
        failed += code not in (0, SKIPPED)
        print(f"{'pass' if code == 0 else 'n/a ' if code == SKIPPED else 'fail'}  {name}, {time.monotonic() - begun:.0f} s",
              flush=True)
        if code:
            print(tail(said), end="", flush=True)
    print(f"{len(cases)} cases, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
