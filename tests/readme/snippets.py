#!/usr/bin/env python3
"""Every C++, C or Fortran block of a page equals marked lines of tests/examples, and every marked block is on some page:
snippets.py FOLDER_OF_THE_EXAMPLES PAGE.md..."""

import pathlib
import re
import sys
import textwrap

MARKED = re.compile(r"^ *(?://|!) \[README (\w+)\]\n(.*?)^ *(?://|!) \[README \1 end\]", re.S | re.M)
SHOWN = re.compile(r"^```(?:cpp|c|fortran)\n(.*?)^```", re.S | re.M)
FIRST_MAX = 15  # lines of code of a first task


def lines_of_code(text):
    """The number of lines that are neither blank, nor a brace, nor an include."""
    return sum(1 for line in text.splitlines() if line.strip(" {}") and not line.startswith("#include"))


def main(arguments):
    if len(arguments) < 2:
        print("usage: snippets.py FOLDER_OF_THE_EXAMPLES PAGE.md...", file=sys.stderr)
        return 2
    shown = {}
    for page in map(pathlib.Path, arguments[1:]):
        shown.update({lines: page.name for lines in SHOWN.findall(page.read_text(encoding="utf-8"))})
    marked = {}
    for example in sorted(pathlib.Path(arguments[0]).rglob("*.*")):
        if example.suffix not in (".cpp", ".c", ".f90"):
            continue
        for name, lines in MARKED.findall(example.read_text(encoding="utf-8")):
            marked[name] = textwrap.dedent(lines)
    missing = [name for name, lines in marked.items() if lines not in shown]
    strange = [lines for lines in shown if lines not in marked.values()]
    for name in missing:
        print(f"no page shows the lines marked [README {name}] as they are")
    for lines in strange:
        print(f"{shown[lines]} shows code that no example compiles:\n{lines}")
    long = [name for name, lines in marked.items() if name.startswith("first_") and lines_of_code(lines) > FIRST_MAX]
    for name in long:
        print(f"{name} is a first task of {lines_of_code(marked[name])} lines of code, at most {FIRST_MAX}")
    print(f"{len(marked) - len(missing) - len(long)} passed, {len(missing) + len(strange) + len(long)} failed")
    return 1 if missing or strange or long or not marked else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
