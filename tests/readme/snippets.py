#!/usr/bin/env python3
"""The C++ that pages show is the marked lines of tests/examples, and each of those is shown on some page:
snippets.py FOLDER_OF_THE_EXAMPLES PAGE.md..."""

import pathlib
import re
import sys
import textwrap

MARKED = re.compile(r"^ *// \[README (\w+)\]\n(.*?)^ *// \[README \1 end\]", re.S | re.M)
SHOWN = re.compile(r"^```cpp\n(.*?)^```", re.S | re.M)


def main(arguments):
    if len(arguments) < 2:
        print("usage: snippets.py FOLDER_OF_THE_EXAMPLES PAGE.md...", file=sys.stderr)
        return 2
    shown = {}
    for page in map(pathlib.Path, arguments[1:]):
        shown.update({lines: page.name for lines in SHOWN.findall(page.read_text(encoding="utf-8"))})
    marked = {}
    for example in sorted(pathlib.Path(arguments[0]).glob("*.cpp")):
        for name, lines in MARKED.findall(example.read_text(encoding="utf-8")):
            marked[name] = textwrap.dedent(lines)
    missing = [name for name, lines in marked.items() if lines not in shown]
    strange = [lines for lines in shown if lines not in marked.values()]
    for name in missing:
        print(f"no page shows the lines marked [README {name}] as they are")
    for lines in strange:
        print(f"{shown[lines]} shows C++ that no example compiles:\n{lines}")
    print(f"{len(marked) - len(missing)} passed, {len(missing) + len(strange)} failed")
    return 1 if missing or strange or not marked else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
