#!/usr/bin/env python3
"""Visits every state of session.pml: check_model.py SPIN COMPILER. Exits 1 if a state breaks an assertion, if a process
waits for ever, or if a statement is never reached. RESHARD_LONG=1 visits 16 million states, in about a minute."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

MODEL = pathlib.Path(__file__).resolve().with_name("session.pml")


def visit(spin, compiler, *defines):
    """Returns the words of the checker about the model with these definitions."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([spin, *defines, "-a", str(MODEL)], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        subprocess.run([compiler, "-O2", "-w", "-DSAFETY", "-DCOLLAPSE", "-o", "pan", "pan.c"], cwd=folder, check=True)
        return subprocess.run(["./pan", "-m200000"], cwd=folder, check=True, capture_output=True, text=True).stdout


def faults(said):
    """Yields the faults in the words of the checker: errors, an unfinished search, statements that no state reaches."""
    if not re.search(r"errors: 0\b", said):
        yield "an error"
    if "max search depth too small" in said or "out of memory" in said:
        yield "the search is not complete"
    for found in re.findall(r"unreached in .*\n((?:\t.*\n)*)", said):
        if not re.match(r"\t\(0 of", found):
            yield "a statement is never reached"


def main(spin, compiler):
    long = os.environ.get("RESHARD_LONG", "0") not in ("", "0")
    said = visit(spin, compiler, "-DNEWEST=3", f"-DUPDATES={2 if long else 1}")
    wrong = list(faults(said))
    if not long:  # only the long run reaches every statement
        wrong = [one for one in wrong if one != "a statement is never reached"]
    print(said if wrong else re.search(r"(\d+) states, stored", said).group(0))
    placed = visit(spin, compiler, "-DNEWEST=2", "-DUPDATES=2", "-DIN_PLACE")  # each read overwrites the version before
    wrong += [f"in place: {one}" for one in faults(placed) if one != "a statement is never reached"]
    # A model without the rule that a voter serves nothing must fail, or the checker looks at nothing.
    blind = visit(spin, compiler, "-DNEWEST=2", "-DUPDATES=2", "-DSERVES_WHILE_IT_VOTES")
    if not list(faults(blind)) or "assertion violated" not in blind:
        wrong.append("the model without its main rule was not found wrong")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
