#!/usr/bin/env python3
"""`reshard convert` against `cp` and `sync -f` of the same bytes: files.py TOOL [--gigabytes 1] [--memory 1GiB]
[--rounds 3] [--folder .]

A synthetic checkpoint of a Llama's shape is made in torch DCP's form over 64 ranks, then converted from form to form.
Caches are dropped before each run where that is allowed, else the files' pages are given up one by one; copy and
conversion take turns, and medians are printed. Anonymous memory is the largest RssAnon that was seen."""

import argparse
import json
import os
import shutil
import statistics
import struct
import subprocess
import tempfile
import threading
import time

HIDDEN, INNER, WORDS, KEYS = 4096, 14336, 128256, 1024
LAYER = {"q_proj": (HIDDEN, HIDDEN), "k_proj": (KEYS, HIDDEN), "v_proj": (KEYS, HIDDEN), "o_proj": (HIDDEN, HIDDEN),
         "gate_proj": (INNER, HIDDEN), "up_proj": (INNER, HIDDEN), "down_proj": (HIDDEN, INNER)}


def shapes(gigabytes):
    """A Llama-3 8B has 32 layers and 16 GB; fewer layers have less."""
    ends = 4 * WORDS * HIDDEN if gigabytes > 2 else 0  # bytes of the first tensor and the last
    layers = max(1, round((gigabytes * 1e9 - ends) / (2 * sum(a * b for a, b in LAYER.values()))))
    tensors = {"model.embed_tokens.weight": (WORDS, HIDDEN)} if ends else {}
    for i in range(layers):
        tensors.update({f"model.layers.{i}.{name}.weight": shape for name, shape in LAYER.items()})
        tensors.update({f"model.layers.{i}.{name}.weight": (HIDDEN,) for name in ("input_norm", "post_norm")})
    if ends:
        tensors["lm_head.weight"] = (WORDS, HIDDEN)
    return tensors


def make_fsdp(folder, tensors, ranks):
    """bf16, cut by rows. The bytes are random, and each file's its own."""
    os.makedirs(folder)
    for rank in range(ranks):
        header, offsets, at = {}, {}, 0
        for name, shape in tensors.items():
            rows = -(-shape[0] // ranks)
            begin, end = min(rows * rank, shape[0]), min(rows * (rank + 1), shape[0])
            size = 2 * (end - begin) * (shape[1] if len(shape) > 1 else 1)
            header[name] = {"dtype": "BF16", "shape": [end - begin, *shape[1:]], "data_offsets": [at, at + size]}
            offsets[name] = {"saved_offsets": [begin] + [0] * (len(shape) - 1)}
            at += size
        header["__metadata__"] = {"DCP_SHARDING_INFO": json.dumps(offsets), "DCP_VERSION": "1.0", "format": "pt"}
        text = json.dumps(header).encode()
        with open(os.path.join(folder, f"shard-{rank + 1:05}-model-00001-of-00001.safetensors"), "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            block = os.urandom(1 << 20)
            for begin in range(0, at, len(block)):
                file.write(block[:at - begin])


def rules(end, ranks, columns=False):
    """As vLLM cuts a Llama; `columns`: all by columns."""
    lines = [f"{end} tp={ranks}", "*_norm.weight = -"]
    for name in LAYER:
        cut = "[-, tp]" if columns or name in ("o_proj", "down_proj") else "[tp, -]"
        lines.append(f"*.{name}.weight = {cut}")
    return lines


def drop_caches(*paths):
    subprocess.run(["sync"], check=True)
    try:
        with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
            file.write("3\n")
        return "dropped"
    except OSError:
        for path in paths:
            for folder, _, names in os.walk(path):
                for name in names:
                    descriptor = os.open(os.path.join(folder, name), os.O_RDONLY)
                    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                    os.close(descriptor)
        return "given up file by file"


def watched(command):
    """Seconds, the largest RssAnon in bytes, what it printed."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    most = [0]

    def watch():
        while process.poll() is None:
            try:
                with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
                    most[0] = max(most[0], *(1024 * int(line.split()[1]) for line in file if line.startswith("RssAnon")), 0)
            except (OSError, TypeError, ValueError):
                pass
            time.sleep(0.01)

    watcher = threading.Thread(target=watch)
    watcher.start()
    out, _ = process.communicate()
    watcher.join()
    if process.returncode != 0:
        raise SystemExit(f"{command} ended with {process.returncode}")
    return time.monotonic() - begin, most[0], out


def remove(path):
    shutil.rmtree(path, ignore_errors=True)
    for one in (path, path + ".reshard.json"):
        if os.path.isfile(one):
            os.remove(one)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool")
    parser.add_argument("--gigabytes", type=float, default=1)
    parser.add_argument("--memory", default="1GiB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", default=".")
    asked = parser.parse_args()
    tool = os.path.abspath(asked.tool)
    folder = tempfile.mkdtemp(dir=asked.folder)
    path = lambda name: os.path.join(folder, name)
    try:
        tensors = shapes(asked.gigabytes)
        make_fsdp(path("fsdp64"), tensors, 64)
        embed = [f"{name} = [tp, -]" for name in ("model.embed_tokens.weight", "lm_head.weight") if name in tensors]
        pairs = [("fsdp64", "tp8", "ranks", rules("target", 8) + embed),
                 ("tp8", "tp4", "ranks", rules("source", 8) + embed + rules("target", 4) + embed),
                 ("fsdp64", "columns16", "dcp", rules("target", 16, True) + embed),
                 ("columns16", "rows16", "dcp", [line.replace("[-, tp]", "[tp, -]") for line in rules("target", 16)] + embed),
                 ("rows16", "one.safetensors", "single", []),
                 ("one.safetensors", "tp8again", "ranks", rules("target", 8) + embed)]
        for number, (source, target, form, lines) in enumerate(pairs):
            with open(path("rules"), "w", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
            options = ["--rules", path("rules")] if lines else []
            command = [tool, "convert", path(source), path(target), "--to", form, *options, "--memory", asked.memory]
            copies, converts, anonymous, line = [], [], 0, ""
            for _ in range(asked.rounds):
                remove(path("copy"))
                how = drop_caches(folder)
                copies.append(watched(["sh", "-c", 'cp -r "$0" "$1" && sync -f "$1"', path(source), path("copy")])[0])
                remove(path("copy"))
                remove(path(target))
                drop_caches(folder)
                seconds, most, line = watched(command)
                converts.append(seconds)
                anonymous = max(anonymous, most)
            copy, convert = statistics.median(copies), statistics.median(converts)
            print(f"{source} -> {target}: cp {copy:.2f} s, convert {convert:.2f} s = {convert / copy:.2f}x   "
                  f"anonymous {anonymous / 2**20:.0f} MiB of {asked.memory}   caches {how}\n    {line.strip()}", flush=True)
            print("    cp " + " ".join(f"{s:.2f}" for s in copies) + "   convert "
                  + " ".join(f"{s:.2f}" for s in converts), flush=True)
            for one in (source, target):  # three of them are there at most
                if not any(one == later for later, *_ in pairs[number + 1:]):
                    remove(path(one))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
