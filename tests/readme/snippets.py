#!/usr/bin/env python3
"""README's C++ snippets are the marked lines of tests/examples: snippets.py README.md FOLDER_OF_THE_EXAMPLES."""

import pathlib
import re
import sys
import textwrap

MARKED = re.compile(r"^ *// \[README (\w+)\]\n(.*?)^ *// \[README \1 end\]", re.S | re.M)
SHOWN = re.compile(r"^```cpp\n(.*?)^```", re.S | re.M)


def main(arguments):
    if len(arguments) != 2:
        print("usage: snippets.py README.md FOLDER_OF_THE_EXAMPLES", file=sys.stderr)
        return 2
    shown = set(SHOWN.findall(pathlib.Path(arguments[0]).read_text(encoding="utf-8")))
    marked = {}
    for example in sorted(pathlib.Path(arguments[1]).glob("*.cpp")):
        for name, lines in MARKED.findall(example.read_text(encoding="utf-8")):
            marked[name] = textwrap.dedent(lines)
    missing = [name for name, lines in marked.items() if lines not in shown]
    strange = [lines for lines in shown if lines not in marked.values()]
    for name in missing:
        print(f"README does not show the lines marked [README {name}] as they are")
    for lines in strange:
        print(f"README shows C++ that no example compiles:\n{lines}")
    print(f"{len(marked) - len(missing)} passed, {len(missing) + len(strange)} failed")
    return 1 if missing or strange or not marked else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
