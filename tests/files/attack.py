#!/usr/bin/env python3
"""Runs the tool on hostile files. For any content, the tool must end by itself, soon and in little memory. An error must be
one sentence without control characters. Only the output may be made, changed or removed.

    attack.py [--seed N] [--case I] [--seconds S]      RESHARD_TOOL: the tool; RESHARD_LOADER: tests/files/loader

--seed and --case repeat a failure, which prints them. RESHARD_LONG=1 runs for RESHARD_LONG_SECONDS, by default an hour."""

import argparse
import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import stat
import struct
import sys
import tempfile
import threading
import time

import hostile

TOOL = os.environ["RESHARD_TOOL"]
LOADER = os.environ.get("RESHARD_LOADER", "")
SANITIZED = os.environ.get("RESHARD_SANITIZED") == "1"
LONG = os.environ.get("RESHARD_LONG") == "1"
CASES = 10 if SANITIZED else 80   # cases in a short run
CPU_SECONDS_MAX = 5
WALL_SECONDS_MAX = 120           # enough on a busy machine; a call that waits for something never ends
MEMORY_MAX = 512 << 20           # resident bytes of one call, or of each of the loader's two ranks
CHUNKS_MEMORY_MAX = 96 << 20     # the same where only chunks are damaged: --memory, and the libraries
FILE_BYTES_MAX = 16 << 20        # if a call writes more, the system returns an error
HIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]")


class Wrong(Exception):
    pass


def states(folder, but):
    """The contents of a folder by path: kind, size, time, bytes."""
    found = {}
    for root, names, files in os.walk(folder):
        for name in names + files:
            path = os.path.join(root, name)
            place = os.path.relpath(path, folder)
            if place.split(os.sep)[0].startswith(but):
                continue
            status = os.lstat(path)
            content = os.readlink(path) if stat.S_ISLNK(status.st_mode) else ""
            if stat.S_ISREG(status.st_mode):
                with open(path, "rb") as file:
                    content = hashlib.sha256(file.read()).hexdigest()
            found[place] = (status.st_mode, status.st_size if stat.S_ISREG(status.st_mode) else 0, content)
    return found


def limits():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES_MAX, FILE_BYTES_MAX))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


class Ran:
    """One call, with its output, time and memory."""

    def __init__(self, command, folder, stdin=b""):
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, tempfile.TemporaryFile() as given:
            given.write(stdin)
            given.seek(0)
            child = os.fork()
            if child == 0:
                try:
                    os.chdir(folder)
                    limits()
                    for number, file in ((0, given), (1, out), (2, err)):
                        os.dup2(file.fileno(), number)
                    os.execve(command[0], command, dict(os.environ, NO_COLOR="1", OMP_NUM_THREADS="1"))
                finally:
                    os._exit(126)
            self.overdue = False
            alarm = threading.Timer(WALL_SECONDS_MAX, self.stop, (child,))
            alarm.start()
            _, status, used = os.wait4(child, 0)
            alarm.cancel()
            self.code = os.waitstatus_to_exitcode(status)
            self.cpu = used.ru_utime + used.ru_stime
            self.memory = used.ru_maxrss * 1024
            out.seek(0)
            err.seek(0)
            self.out, self.err = out.read(), err.read()

    def stop(self, child):
        self.overdue = True
        os.kill(child, signal.SIGKILL)

    def judge(self, as_json, of_batch=False, ranks=1, memory_max=MEMORY_MAX):
        if self.overdue:
            raise Wrong(f"does not end in {WALL_SECONDS_MAX} s")
        if self.code not in (0, 1, 2):
            raise Wrong(f"ends with {self.code}")
        if not SANITIZED and self.memory > ranks * memory_max:
            raise Wrong(f"takes {self.memory >> 20} MiB")
        if not SANITIZED and self.cpu > ranks * CPU_SECONDS_MAX:
            raise Wrong(f"takes {self.cpu:.1f} s of a processor")
        try:
            out, err = self.out.decode(), self.err.decode()
        except UnicodeDecodeError as error:
            raise Wrong(f"writes bytes that are not UTF-8: {error}") from error
        if as_json:
            for line in out.split("\n")[:-1]:
                json.loads(line)
        elif HIDDEN.search(out):
            raise Wrong(f"writes {HIDDEN.search(out).group()!r} to stdout")
        if HIDDEN.search(err):
            raise Wrong(f"writes {HIDDEN.search(err).group()!r} to stderr")
        if self.code == 0:
            if err:
                raise Wrong("says something on stderr and ends well")
            return
        if of_batch:
            return  # errors are lines of the answer
        said = err.splitlines()
        one = len(said) == 1 or (len(said) == 3 and said[2].strip() == "^")
        if not one or not err.startswith("reshard: ") or len(said[0]) < 15 or len(err) > 4000:
            raise Wrong("does not say in one sentence what is wrong")
        if out and not as_json:
            raise Wrong("answers and fails")


def spoil_while(path, whole, rng, done):
    """Makes a file shorter, longer and whole again, until `done`."""
    while not done.is_set():
        kind = rng.randrange(3)
        with open(path, "r+b") as file:
            if kind == 0:
                file.truncate(rng.choice([0, 7, 8, 100, len(whole) - 1]))
            elif kind == 1:
                file.truncate(len(whole) + 4096)
            else:
                file.write(whole)
                file.truncate(len(whole))
        done.wait(rng.random() * 0.002)
    with open(path, "wb") as file:
        file.write(whole)


def commands(rng, arguments):
    path, more = arguments[0], arguments[1:]
    inspect = [TOOL, "inspect", path, *rng.choice([[], [], ["--json"], ["--tensor", rng.choice(hostile.NAMES).replace("\0", "0")], ["--tensor", "model.a"]])]
    convert = [TOOL, "convert", path, rng.choice(["out", "out.safetensors", "out.npy", "out.zarr"]), "--memory", "64MiB", *more]
    convert += rng.choice([[], [], ["--verify"], ["--dry-run"], ["--json"], ["--to", rng.choice(["index", "single", "ranks", "dcp", "zarr", "npy"])],
                           ["--cast", "bf16"], ["--jobs", "1"]])
    asked = [inspect, convert]
    if LOADER:
        rules = more[more.index("--rules") + 1] if "--rules" in more else ""
        asked.append([LOADER, path, rules])
    return asked


def attacked(rng, kind, folder):
    """Draws one case into the folder and runs the tool on it."""
    place = hostile.Place(folder)
    place.put("canary.safetensors", hostile.safetensors(rng, {"model.a": [2, 2]}, bend=False))
    place.put("beside/kept", b"kept")
    arguments = kind(rng, place)
    before = states(folder, "out")
    for command in commands(rng, arguments):
        done = threading.Event()
        spoiler = None
        if kind is hostile.changing:
            path = place.path("in.safetensors")
            with open(path, "rb") as file:
                spoiler = threading.Thread(target=spoil_while, args=(path, file.read(), random.Random(rng.random()), done))
            spoiler.start()
        try:
            ran = Ran(command, folder)
        finally:
            done.set()
            if spoiler:
                spoiler.join()
        where = " ".join(repr(word) if HIDDEN.search(word) or not word else word for word in command)
        try:
            ran.judge("--json" in command, ranks=2 if command[0] == LOADER else 1,
                      memory_max=CHUNKS_MEMORY_MAX if kind is hostile.chunks else MEMORY_MAX)
            after = states(folder, "out")
            if after != before:
                raise Wrong(f"changes {sorted(name for name in {*before, *after} if before.get(name) != after.get(name))}")
        except Wrong as wrong:
            raise Wrong(f"{where}\n    {wrong}\n    stdout {ran.out[-600:]!r}\n    stderr {ran.err[-600:]!r}") from wrong
        for name in os.listdir(folder):
            if name.startswith("out"):
                shutil.rmtree(place.path(name)) if os.path.isdir(place.path(name)) else os.remove(place.path(name))


# Cases that were found once, and large texts, which random draws seldom make.
def many_lists(_, place):
    text = b"[" * (16 << 20)
    return [place.put("in.safetensors", struct.pack("<Q", len(text)) + text)]


def many_lists_within(_, place):
    text = b'{"a":' + b"[" * (8 << 20)
    return [place.put("in.safetensors", struct.pack("<Q", len(text)) + text)]


def many_numbers(_, place):
    text = b'{"a":[' + b"0," * (10 << 20) + b"0]}"
    return [place.put("in.safetensors", struct.pack("<Q", len(text)) + text)]


def many_empty(_, place):
    place.put("in/zarr.json", b'{"zarr_format":3,"attributes":{"a":[' + b"[]," * (4 << 20) + b"[]]}}")
    return ["in"]


def many_names(_, place):
    text = ('{"weight_map":{' + ",".join(f'"{i}":"x.safetensors"' for i in range(1_500_000)) + "}}").encode()
    place.put("in/model.safetensors.index.json", text)
    return ["in"]


def deep_texts(_, place):
    array = small_array(1, 1)
    array["attributes"] = hostile.Raw("[" * 100_000 + "]" * 100_000)
    place.put("in.zarr/zarr.json", hostile.written(array))
    return ["in.zarr"]


def long_names(_, place):
    header = {"n" * (1 << 20): {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}}
    for i in range(2000):
        header[f"t{i}"] = {"dtype": "F32", "shape": [], "data_offsets": [4 + 4 * i, 8 + 4 * i]}
    text = json.dumps(header).encode()
    return [place.put("in.safetensors", struct.pack("<Q", len(text)) + text + b"\0" * 8004)]


def huge_zarr(_, place):
    place.put("in.zarr/zarr.json", hostile.written(small_array(1 << 22, 1)))
    return ["in.zarr"]


def small_array(elements, chunk):
    return {"zarr_format": 3, "node_type": "array", "shape": [elements], "data_type": "float32", "fill_value": 0, "attributes": {},
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [chunk]}}, "storage_transformers": [],
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}


FOUND = [many_lists, many_lists_within, many_numbers, many_empty, many_names, deep_texts, long_names, huge_zarr]


def problems(rng):
    """Lines for `plan --batch`."""
    good = {"id": "a", "mesh": "x=2", "source": "f32[4@x]", "target": "f32[4]"}
    lines = [hostile.spoilt(rng, hostile.written(hostile.bent(rng, good)).encode("utf-8", "surrogatepass")).replace(b"\n", b" ")
             for _ in range(40)]
    lines += [b"[" * 100_000, b'{"id":' * 100_000, b"[" * 100_000 + b"\0", b"\xef\xbb\xbf" + json.dumps(good).encode()]
    return b"\n".join(lines) + b"\n"


def case(seed, number):
    rng = random.Random(f"{seed}:{number}")
    with tempfile.TemporaryDirectory(prefix="reshard_attack_") as folder:
        if number < len(FOUND):
            attacked(rng, FOUND[number], folder)
        elif number == len(FOUND):
            ran = Ran([TOOL, "plan", "--batch"], folder, problems(rng))
            ran.judge(True, of_batch=True)
        else:
            attacked(rng, hostile.KINDS[number % len(hostile.KINDS)], folder)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--seed", type=int, default=None)
    options.add_argument("--case", type=int, default=None)
    options.add_argument("--seconds", type=float, default=float(os.environ.get("RESHARD_LONG_SECONDS") or 3600) if LONG else None)
    given = options.parse_args()
    seed = given.seed
    if seed is None:
        seed = int(os.environ.get("RESHARD_SEED") or (random.SystemRandom().randrange(2**32) if LONG else 20261125))
    print(f"seed {seed}", flush=True)
    end = None if given.seconds is None else time.monotonic() + given.seconds
    numbers = [given.case] if given.case is not None else iter(range(sys.maxsize) if end else range(len(FOUND) + 1 + CASES))
    failures = done = 0
    for number in numbers:
        if end is not None and given.case is None and time.monotonic() > end:
            break
        done += 1
        try:
            case(seed, number)
        except Wrong as wrong:
            failures += 1
            print(f"FAILED attack.py --seed {seed} --case {number}: {wrong}", flush=True)
            if failures == 20:
                break
    print(f"{done} cases, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
