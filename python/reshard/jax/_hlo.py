"""Collectives of a compiled program, read from XLA's text: the bytes that each receives, how often it runs, and its
origin."""

from __future__ import annotations

import re
from dataclasses import dataclass

_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*-> .*\{$")
_COLLECTIVE = re.compile(r"= (\(?.*?\)?) (all-gather|all-to-all|all-reduce|reduce-scatter|collective-permute|"
                         r"ragged-all-to-all)(-start)?\(")
_SHAPE = re.compile(r"\b([a-z]\d*[a-z\d]*)\[([\d,]*)\]")
_CALLED = re.compile(r"\b(?:calls|to_apply|body|condition|branch_computations|called_computations)="
                     r"(\{[^}]*\}|%?[\w.\-]+)")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')


@dataclass(frozen=True)
class Collective:
    """One collective of a compiled program. received: bytes of the busiest device in one run; bytes: of the result on a
    device.
    times: runs, if the program determines them.

    array: the result as XLA writes it. group: devices that take part together. op: JAX's name of the operation that
    needs it, place: its file and line; both are empty if XLA has lost them."""

    kind: str
    array: str
    group: int
    received: int
    bytes: int
    times: int
    op: str
    place: str


def collectives(text: str) -> list[Collective]:
    """All collectives of an HLO module, in its order. text: compiled.as_text()."""
    computations, entry, devices = _computations(text)
    times = _times(computations, entry)
    files = _frames(text)
    found = []
    for name, lines in computations.items():
        for line in lines:
            match = _COLLECTIVE.search(line)
            if match and times.get(name, 0):
                found.append(_collective(match, line, devices, times[name], files))
    return found


def received(text: str) -> int:
    """Bytes that the busiest device receives over a whole program."""
    return sum(one.received * one.times for one in collectives(text))


def _computations(text: str) -> tuple[dict[str, list[str]], str, int]:
    computations: dict[str, list[str]] = {}
    entry = here = ""
    partitions, replicas = (int(found.group(1)) if (found := re.search(rf"{word}=(\d+)", text)) else 1
                            for word in ("num_partitions", "replica_count"))
    for line in text.splitlines():
        begun = _COMPUTATION.match(line)
        if begun:
            here = begun.group(2)
            computations[here] = []
            entry = here if begun.group(1) else entry
        elif here:
            computations[here].append(line)
    return computations, entry, partitions * replicas


def _times(computations: dict[str, list[str]], entry: str) -> dict[str, int]:
    """How often each computation runs: once per call, and a loop body as often as XLA knows that the loop runs."""
    times = {entry: 1}
    waiting = [entry]
    while waiting:
        caller = waiting.pop()
        for line in computations.get(caller, ()):
            turns = _TRIPS.search(line)
            for called in _CALLED.findall(line):
                for name in re.findall(r"[\w.\-]+", called):
                    if name in computations:
                        times[name] = times.get(name, 0) + times[caller] * (int(turns.group(1)) if turns else 1)
                        waiting.append(name)
    return times


def _bytes(dtype: str, extents: str) -> int:
    bits = 8 if dtype == "pred" else int(re.search(r"\d+", dtype).group()) if re.search(r"\d", dtype) else 0
    count = 1
    for extent in filter(None, extents.split(",")):
        count *= int(extent)
    return -(-count * bits // 8)


def _group(line: str, devices: int) -> int:
    if listed := re.search(r"replica_groups=\{\{([\d,]*)\}", line):
        return listed.group(1).count(",") + 1
    if iota := re.search(r"replica_groups=\[(\d+),(\d+)\]", line):
        return int(iota.group(2))
    if named := re.search(r"replica_groups=\{?(?:@)?mesh\[([^\]]*)\][^{]*\{([^}]*)\}", line):
        sizes = dict(re.findall(r"'(\w+)'=(\d+)", named.group(1)))
        count = 1
        for axis, part in re.findall(r"'(\w+)'(?::\(\d+\)(\d+))?", named.group(2)):
            count *= int(part or sizes[axis])
        return count
    return devices


def _collective(match, line: str, devices: int, times: int, files: dict[str, str]) -> Collective:
    result, kind, start = match.groups()
    shapes = _SHAPE.findall(result)
    if start and kind in ("all-gather", "collective-permute"):
        shapes = shapes[len(shapes) // 2:] if kind == "all-gather" else shapes[1:2]
    total = sum(_bytes(*shape) for shape in shapes)
    group = _group(line, devices)
    if kind == "collective-permute":
        pairs = re.findall(r"\{(\d+),(\d+)\}", line.partition("source_target_pairs=")[2].partition("}}")[0] + "}")
        got = total if any(one != other for one, other in pairs) else 0
    else:
        share = {"all-reduce": 2 * total, "reduce-scatter": total * group}.get(kind, total)
        got = share * (group - 1) // group
    op = re.search(r'op_name="([^"]*)"', line)
    file, number = re.search(r'source_file="([^"]*)"', line), re.search(r"source_line=(\d+)", line)
    frame = re.search(r"stack_frame_id=(\d+)", line)
    place = f"{file.group(1)}:{number.group(1)}" if file and number else files.get(frame.group(1), "") if frame else ""
    return Collective(kind, ", ".join(f"{dtype}[{extents}]" for dtype, extents in shapes), group, got, total, times,
                      op.group(1) if op else "", place)


def _frames(text: str) -> dict[str, str]:
    """File and line by the number of a stack frame, from the tables at the head of a module."""
    def table(name: str) -> dict[str, str]:
        found = re.search(rf"^{name}\n((?:\d+ .*\n)*)", text, re.M)
        return dict(line.split(" ", 1) for line in found.group(1).splitlines()) if found else {}
    files, places, frames = table("FileNames"), table("FileLocations"), table("StackFrames")
    named = {}
    for number, frame in frames.items():
        where = re.search(r"file_location_id=(\d+)", frame)
        place = places.get(where.group(1), "") if where else ""
        file, line = re.search(r"file_name_id=(\d+)", place), re.search(r"line=(\d+)", place)
        if file and line:
            named[number] = f"{files.get(file.group(1), '').strip(chr(34))}:{line.group(1)}"
    return named
