#!/usr/bin/env python3
"""Runs every command of the ```console blocks of pages: readme.py FOLDER_OF_THE_TOOL PAGE.md... Each page runs in a folder
of its own, so no page depends on another, and as many pages run at a time as there are cores.

A command is a line `$ command`, continued while it ends in a backslash. The lines up to the next command are its output;
if no line follows, the command must only succeed. `...` matches any lines. Plans are the same everywhere and are
compared exactly. If a command measures time (reshard run, reshard bench), every number matches any number."""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

# These start this very test, change the machine, or start programs of Python, which tests/python runs. A person runs ./dev.
NOT_RUN = re.compile(r"(\./dev|sudo|apt-get|apt|git clone|cd|cmake|ctest|pip|for rank in|python (rules|sharded)|mpirun -n \d+ python)\b")
MEASURED = re.compile(r"\breshard (run|bench)\b")


def commands(page, text):
    """(line number, command, expected lines) of each command in a console block."""
    inside, current = False, None
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            inside = not inside and line.startswith("```console")
            if current:
                yield current
                current = None
        elif inside and current and current[1].endswith("\\"):
            current = (current[0], current[1][:-1] + line.strip(), current[2])
        elif inside and line.startswith("$ "):
            if current:
                yield current
            current = (number, line[2:], [])
        elif inside and current:
            current[2].append(line.rstrip())
        elif inside:
            raise SystemExit(f"{page}:{number}: output without a command")


def normal(line, measured):
    """A line as it is compared: blanks at its end are cut; if times are measured, every number becomes the same sign."""
    if not measured:
        return line.rstrip()
    line = re.sub(r"\d[\d.,]*( ?(ps|ns|us|ms|s|B|KiB|MiB|GiB|TiB)\b)?", "#", line)
    return re.sub(r"[ ─-]+", " ", line).strip()


def matches(printed, expected, measured):
    """Line by line; `...` in `expected` stands for any lines."""
    texts = [r"(?:.*\n)*?" if line.strip() == "..." else re.escape(normal(line, measured)) + r"\n" for line in expected]
    lines = [normal(line, measured) + "\n" for line in printed.rstrip("\n").splitlines()]
    return re.fullmatch("".join(texts), "".join(lines)) is not None


def run_page(page, environment):
    """Runs a page. Returns the numbers of its commands and of failed ones, and a report of each command."""
    failed, ran, said = 0, 0, []
    with tempfile.TemporaryDirectory() as folder:
        for number, command, expected in commands(page.name, page.read_text(encoding="utf-8")):
            if NOT_RUN.match(command):
                said.append(f"{page.name}:{number}: left to a person: {command}")
                continue
            ran += 1
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=folder, env=environment,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            while expected and not expected[-1]:
                expected.pop()
            if done.returncode != 0:
                failed += 1
                said.append(f"{page.name}:{number}: exit {done.returncode}: {command}\n{done.stdout}{done.stderr}")
            elif expected and not matches(done.stdout, expected, MEASURED.search(command)):
                failed += 1
                said.append(f"{page.name}:{number}: prints something else: {command}\n{done.stdout}")
            else:
                said.append(f"{page.name}:{number}: ok: {command}")
    return ran, failed, said


def main(arguments):
    if len(arguments) < 2:
        print("usage: readme.py FOLDER_OF_THE_TOOL PAGE.md...", file=sys.stderr)
        return 2
    environment = dict(os.environ, PATH=f"{pathlib.Path(arguments[0]).resolve()}:{os.environ['PATH']}", NO_COLOR="1",
                       OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                       OMPI_MCA_rmaps_base_oversubscribe="1")
    ran = failed = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for of_page, failed_of_page, said in pool.map(lambda page: run_page(pathlib.Path(page), environment), arguments[1:]):
            ran, failed = ran + of_page, failed + failed_of_page
            print(*said, sep="\n", flush=True)
    print(f"{ran} commands on {len(arguments) - 1} pages, {failed} failed")
    return 1 if failed or not ran else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
