#!/usr/bin/env python3
"""Every theorem that README.md, docs/, proofs/README.md or a comment names is proved and closed: theorems.py [ROOT].

A name is a name in the Coq column of the claims of proofs/README.md, a word after "theorem" or "theorems", or any word
in backticks that is a theorem. Each must be stated in proofs/*.v, printed by proofs/Main.v, and expected to be closed;
the test `proofs` compares Coq's output with that expectation. `theorems.py self_test` breaks each rule once."""

import pathlib
import re
import sys
import tempfile

STATED = re.compile(r"^\s*(?:Theorem|Lemma|Corollary|Proposition|Fact|Remark)\s+(\w+)", re.M)
PRINTED = re.compile(r"^Print Assumptions (\w+)\.$", re.M)
CLOSED = ": Closed under the global context"
IN_WORDS = re.compile(r"\btheorems?\s+`?(\w+_\w+)`?(?:(?:,|\s+and)\s+`?(\w+_\w+)`?)?")
FOLDERS = ("include", "src", "synth", "backends", "tool", "tests", "bench")


def claims(readme):
    """The names in the second column of the table under "## Claims"."""
    section = readme.partition("## Claims")[2].partition("\n## ")[0]
    for row in re.findall(r"^\|(.*)\|$", section, re.M):
        columns = row.split("|")
        if len(columns) > 1:
            yield from re.findall(r"`(\w+)`", columns[1])


def wrong(root):
    """The faults as (file, fault), and the number of names."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted((root / "proofs").glob("*.v"))}
    main = texts.pop(root / "proofs/Main.v", "")
    stated = {name for text in texts.values() for name in STATED.findall(text)}
    printed = PRINTED.findall(main)
    expected = (root / "proofs/Assumptions.expected").read_text(encoding="utf-8").splitlines()
    faults = []
    if expected != [name + CLOSED for name in printed]:
        faults.append(("proofs/Assumptions.expected", "is not every name that Main.v prints, closed"))
    named = {}
    pages = ["README.md", "proofs/README.md", *sorted(f"docs/{page.name}" for page in (root / "docs").glob("*.md"))]
    for file in pages:
        text = (root / file).read_text(encoding="utf-8")
        words = set(re.findall(r"`(\w+)`", text)) & stated
        for name in sorted(words) + [name for pair in IN_WORDS.findall(text) for name in pair if name]:
            named.setdefault(name, file)
        for source in re.findall(r"`(\w+\.v)`", text):
            if not (root / "proofs" / source).is_file():
                faults.append((file, f"there is no proofs/{source}"))
    for name in claims((root / "proofs/README.md").read_text(encoding="utf-8")):
        named.setdefault(name, "proofs/README.md, claims")
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.[ch]pp")):
            comments = "\n".join(re.findall(r"//+ ?(.*)", path.read_text(encoding="utf-8")))
            for pair in IN_WORDS.findall(comments):
                for name in filter(None, pair):
                    named.setdefault(name, str(path.relative_to(root)))
    for name, where in named.items():
        if name not in stated:
            faults.append((where, f"{name} is no theorem of proofs/*.v"))
        elif name not in printed:
            faults.append((where, f"proofs/Main.v does not print the assumptions of {name}"))
    return faults, len(named)


def self_test():
    """A good tree is clean, and each bad file is found."""
    good = {
        "README.md": "It holds (theorem a_b), `other`.\n",
        "proofs/README.md": "`A.v`\n## Claims\n\n| words | Coq |\n|---|---|\n| it holds | `a_b`, `c_d` |\n\n## More\n",
        "proofs/A.v": "Theorem a_b : True.\nCorollary c_d : True.\nLemma e_f : True.\nDefinition g_h := 1.\n",
        "proofs/Main.v": "Print Assumptions a_b.\nPrint Assumptions c_d.\n",
        "proofs/Assumptions.expected": f"a_b{CLOSED}\nc_d{CLOSED}\n",
        "src/a.cpp": "// (theorem\n// c_d)\n",
    }
    bad = (
        ("README.md", "It holds (theorem x_y).\n"),
        ("README.md", "It holds (`e_f`).\n"),
        ("docs/page.md", "It holds (theorem x_y).\n"),
        ("README.md", "see `B.v`\n"),
        ("proofs/README.md", "## Claims\n| it holds | `g_h` |\n"),
        ("proofs/A.v", "Theorem a_b : True.\n"),
        ("proofs/Main.v", "Print Assumptions a_b.\n"),
        ("proofs/Assumptions.expected", f"a_b{CLOSED}\nAxioms:\n"),
        ("src/a.cpp", "/// theorems a_b and x_y\n"),
    )
    missed = []
    for name, text in (("", ""),) + bad:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for file, content in {**good, **({name: text} if name else {})}.items():
                (root / file).parent.mkdir(parents=True, exist_ok=True)
                (root / file).write_text(content, encoding="utf-8")
            found = wrong(root)[0]
            if bool(found) != bool(name):
                missed.append(f"{name or 'good tree'} / {text!r}: {found}")
    return missed


def main(arguments):
    if arguments == ["self_test"]:
        missed = self_test()
        print("\n".join(missed))
        return 1 if missed else 0
    faults, names = wrong(pathlib.Path(arguments[0] if arguments else __file__ + "/../../..").resolve())
    for where, what in faults:
        print(f"{where}: {what}")
    print(f"{names} theorems named, {len(faults)} faults")
    return 1 if faults or not names else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
