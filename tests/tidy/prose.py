#!/usr/bin/env python3
"""Counts the sentences that a reader must parse twice, in comments, docstrings and pages: prose.py [ROOT] [PREFIX...].

Prints a line for each room, and each flagged sentence of the files that begin with a prefix. The rule `prose` of tidy.py
uses `faults`: a room over its limit fails, and so does a limit that is too high by 0.3 points. So LIMITS can only fall.
Most flagged sentences begin with a condition or an object, or refer to a noun that the reader has to look for. Start with
the thing that acts, say *if* for a condition, and repeat the noun."""

import collections
import os
import pathlib
import re
import sys

GOAL = 2.0  # percent; some hits are good English
SLACK = 0.3  # points by which a limit may exceed its room
LIMITS = {}  # percent, for a room that is not at the goal yet; all others have the goal

IDIOM = re.compile("|".join((
    r"^Of (?!course\b)",
    r"\b(?:of|by|to|with|from|in|on|over|for) (?:which|whom|whose|what)\b",
    r"^(?:Who|What) (?!if\b|follows\b)[^?]*$",
    r"(?<=[,;] )(?:who|what) (?!if\b|follows\b)[^?]*[,;]",
    r"\bthat (?:there|it) (?:is|are)\b",
    r"\bthere (?:is|are) (?:none|no)\b",
    r"^(?:Where|Without|Else|None|Likewise|Nor|Neither|Not meant|Such)\b",
    r"^So (?:is|are|do|does)\b",
    r"\b(?:likewise|alike)\b",
    r"\b(?:those|that) (?:of|in|which|that)\b",
    r"\bbut for\b|\bas ever\b|\bwhoever\b|\bin the midst\b",
)))
SLASHES = re.compile(r"(?:^|\s)//[/!<]*\s?(.*)$")
HASH = re.compile(r"\s*#(?!!)\s?(.*)$")
BY_SUFFIX = {**dict.fromkeys((".cpp", ".hpp", ".h", ".c", ".cu", ".cuh"), SLASHES),
             **dict.fromkeys((".py", ".cmake", ".sh"), HASH)}
TWO_LEVELS = ("src", "synth", "backends", "tests")
LEFT_OUT = {"build", "__pycache__"}


def room_of(name):
    parts = name.split("/")
    return "/".join(parts[:2]) if parts[0] in TWO_LEVELS and len(parts) > 2 else parts[0]


def marker_of(path):
    """The pattern of a line of prose in a file, "page" for a page, None for a file that is not counted."""
    if path.suffix == ".md":
        return "page"
    return HASH if path.name in ("CMakeLists.txt", "dev") else BY_SUFFIX.get(path.suffix)


def prose_lines(path):
    """(line number, prose) of each line that has some. Code blocks and tables of pages have none."""
    marker = marker_of(path)
    closed, inside = True, None  # outside of code blocks; the kind of Python's long string that is open
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        if marker == "page":
            if line.lstrip().startswith("```"):
                closed = not closed
            elif closed and not line.startswith(("    ", "\t", "|")):
                yield number, line.lstrip("#>-* ").strip()
            continue
        if path.suffix == ".py":
            begins, quotes = line.lstrip().startswith('"""'), line.count('"""')
            if (begins and inside is None) or inside == "docstring":
                yield number, line.strip().strip('"')
            if quotes % 2:
                inside = None if inside else "docstring" if begins else "text"
            if quotes or inside:
                continue
        found = marker.search(line) if marker is SLASHES else marker.match(line)
        if found:
            yield number, found.group(1).strip()


def sentences(path):
    """(line number of its paragraph, sentence) of each sentence of three words or more."""
    paragraphs = []
    last = None
    for number, prose in prose_lines(path):
        if prose and number - 1 == last:
            paragraphs[-1][1].append(prose)
        elif prose:
            paragraphs.append((number, [prose]))
        last = number if prose else None
    for number, held in paragraphs:
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(held))
        for sentence in re.split(r"(?<=[.!?;:])\s+", re.sub(r"`[^`]*`", "x", text)):
            if len(sentence.split()) >= 3:
                yield number, sentence


def counted(root, folders):
    """The sentences of each room, and the flagged ones as (file, line number, sentence)."""
    totals, flagged = collections.Counter(), collections.defaultdict(list)
    names = [path for path in root.iterdir() if path.is_file()] if root.is_dir() else []
    for folder in folders:
        for place, below, files in os.walk(root / folder):
            below[:] = sorted(set(below) - LEFT_OUT)
            names += [pathlib.Path(place, file) for file in sorted(files)]
    for path in names:
        if marker_of(path) is None:
            continue
        name = str(path.relative_to(root))
        for number, sentence in sentences(path):
            totals[room_of(name)] += 1
            if IDIOM.search(sentence):
                flagged[room_of(name)].append((name, number, sentence))
    return totals, flagged


def faults(root, folders, limits=None):
    """The faults that the rule reports. Every room may have one flagged sentence, however small it is."""
    limits = LIMITS if limits is None else limits
    totals, flagged = counted(root, folders)
    for room, total in sorted(totals.items()):
        found, limit = flagged[room], limits.get(room, GOAL)
        percent = 100 * len(found) / total
        if percent > limit and len(found) > 1:
            yield f"{room}:1: {percent:.1f}% of {total} sentences must be read twice, at most {limit}%"
            yield from (f"{name}:{number}: {sentence[:120]}" for name, number, sentence in found)
        elif room in limits and (limit > percent + SLACK or percent <= GOAL):
            wanted = "remove it" if percent <= GOAL else f"at most {percent + SLACK:.1f}%"
            yield f"tests/tidy/prose.py:1: the limit of {room} is {limit}%, and the room has {percent:.1f}%: {wanted}"


def main(arguments):
    import tidy  # its list of folders

    root = pathlib.Path(arguments[0] if arguments else __file__ + "/../../..").resolve()
    totals, flagged = counted(root, tidy.PROSE_FOLDERS)
    for name, number, sentence in sorted(one for found in flagged.values() for one in found):
        if name.startswith(tuple(arguments[1:]) or ("-",)):
            print(f"{name}:{number}: {sentence[:160]}")
    for room, total in sorted(totals.items()):
        print(f"{room:24} {total:6} sentences  {100 * len(flagged[room]) / total:5.1f}%")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
