#!/usr/bin/env python3
"""House rules, one test each: tidy.py RULE [ROOT]. Prints `file:line: what is wrong` and exits 1 when a rule is broken.
`tidy.py self_test` breaks each rule once in a tree of its own and sees it found."""

import os
import pathlib
import re
import sys
import tempfile

FOLDERS = ("include", "src", "synth", "backends", "tests", "bench", "proofs")
CODE = (".hpp", ".cpp", ".cu")

# Public headers from the inside out: each sees those of its own line's list and whatever they see.
HEADERS = {
    "integer": [],
    "result": [],
    "mesh": ["integer", "result"],
    "tile": ["integer", "result"],
    "layout": ["mesh", "tile"],
    "view": ["layout"],
    "straighten": ["layout"],
    "step": ["layout"],
    "plan": ["step"],
    "text": ["plan"],
    "notation": ["text"],
    "schedule": ["plan"],
    "simulate": ["plan"],
    "check": ["plan"],
    "list": ["check"],
    "cost": ["check"],
    "synthesize": ["cost", "list"],
    "plan_cache": ["synthesize"],
    "backend": ["schedule"],
    "execute": ["backend", "list"],
    "local": ["backend"],
    "mpi": ["backend"],
    "nccl": ["backend"],
}
CORE = ["integer", "result", "mesh", "tile", "layout", "view", "straighten", "step", "plan", "text", "notation", "schedule",
        "simulate", "check", "list", "cost"]

# Which public headers and which folders' private headers a file may include, the first prefix that fits deciding.
# Sources of core may also write errors in the notation (text); they move memory, so they see what a backend is given.
LAYERS = (
    ("src/cli/", None),
    ("src/execute", (CORE + ["backend", "execute"], ("src/",))),
    ("src/lower", (CORE + ["backend", "execute"], ("src/",))),
    ("src/", (CORE + ["backend"], ("src/",))),
    ("synth/plan_cache", (CORE + ["synthesize", "plan_cache"], ("synth/",))),
    ("synth/", (CORE + ["synthesize"], ("synth/",))),
    ("backends/local/", (CORE + ["backend", "local"], ("backends/local/", "src/"))),
    ("backends/mpi/", (CORE + ["backend", "mpi"], ("backends/mpi/", "src/"))),
    ("backends/nccl/", (CORE + ["backend", "nccl"], ("backends/nccl/", "src/"))),
    ("tests/", None),
    ("bench/", None),
)
# Sources of core with a header of their own see no more than that header's line of the table, and text.
NO_SYSTEM = {  # core and the search: no I/O, clock, randomness, threads, MPI
    header: "core and synth know no I/O, clock, randomness, threads or MPI"
    for header in ("iostream", "ostream", "istream", "fstream", "cstdio", "stdio.h", "filesystem", "chrono", "ctime",
                   "random", "thread", "mutex", "shared_mutex", "condition_variable", "atomic", "future", "mpi.h")
}
BANNED_WORD = re.compile(r"\b\w*(manager|helper|util|handler)\w*", re.I)
ALLOWED_WORD = re.compile(r"^MPI_|^utilit(y|ies)$|^utilization$|error_?handler", re.I)  # MPI's and JSON's words
BANNED_NAME = re.compile(r"\b(src|dst)(_\w*)?\b|\b\w+_(src|dst)\b")
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")


def files(root, suffixes):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in suffixes and path.is_file() and "/." not in str(path.relative_to(root)):
                yield path, str(path.relative_to(root))


def lines(path):
    return enumerate(path.read_text(encoding="utf-8").splitlines(), 1)


def seen_by(header):
    """The headers that `header` may include, closed."""
    seen = set()
    todo = list(HEADERS.get(header, []))
    while todo:
        one = todo.pop()
        if one not in seen:
            seen.add(one)
            todo += HEADERS[one]
    return seen


def owner(root, name, include):
    """The folder whose private header `include` is, seen from the file `name`; None when it is a stranger's."""
    for base in (os.path.dirname(name), "", "src", "src/cli", "synth", "tests"):
        if (root / base / include).is_file():
            return os.path.normpath(os.path.join(base, include))
    return None


def layers(root):
    """Who may include whom."""
    for path, name in files(root, CODE):
        rule = next((rule for prefix, rule in LAYERS if name.startswith(prefix)), ("public",))
        if rule is None:
            continue
        if name.startswith("include/"):
            if path.stem == "reshard":
                public, private = set(HEADERS), ()
            elif path.stem in HEADERS:
                public, private = seen_by(path.stem), ()
            else:
                yield f"{name}:1: a public header that the table of layers does not know"
                continue
        else:
            public, private = set(rule[0]), rule[1]
            if name.startswith("src/") and path.stem in CORE:
                public &= seen_by(path.stem) | {path.stem, "text"}
        for number, line in lines(path):
            system = re.match(r"\s*#\s*include\s*<([^>]+)>", line)
            if system and system.group(1) in NO_SYSTEM:
                core = name.startswith(("src/", "synth/")) or (name.startswith("include/") and path.stem in
                                                               CORE + ["synthesize", "backend", "execute"])
                if core and not name.startswith(("src/execute", "src/lower", "synth/plan_cache")):
                    yield f"{name}:{number}: <{system.group(1)}>: {NO_SYSTEM[system.group(1)]}"
            quoted = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
            if not quoted:
                continue
            include = quoted.group(1)
            header = re.fullmatch(r"reshard/(\w+)\.hpp", include)
            if header:
                if header.group(1) not in public:
                    yield f"{name}:{number}: may not see {include}"
                continue
            place = owner(root, name, include)
            if place is None:
                yield f"{name}:{number}: {include} is nowhere in the tree"
            elif place.startswith("src/cli/") or not place.startswith(private or ("-",)):
                yield f"{name}:{number}: may not see {place}"


def lengths(root):
    """Headers within 200 lines, sources within 400. Columns are clang-format's business."""
    for path, name in files(root, CODE):
        most = 200 if path.suffix == ".hpp" else 400
        count = sum(1 for _ in lines(path))
        if count > most:
            yield f"{name}:{count}: {count} lines, at most {most}"


def words(root):
    """No banned words in names, nothing unfinished."""
    for path, name in files(root, CODE + (".py", ".cmake", ".txt", ".md", ".v")):
        for number, line in lines(path):
            if UNFINISHED.search(line):
                yield f"{name}:{number}: unfinished: {line.strip()}"
            if path.suffix not in CODE or re.match(r"\s*#\s*include", line):
                continue
            code = re.sub(r'"(\\.|[^"\\])*"', '""', line).split("//")[0]
            for found in BANNED_WORD.finditer(code):
                if not ALLOWED_WORD.search(found.group(0)):
                    yield f"{name}:{number}: '{found.group(0)}' says nothing"
            for found in BANNED_NAME.finditer(code):
                yield f"{name}:{number}: '{found.group(0)}': we say source and target"


def proofs(root):
    """Nothing is assumed and nothing is left open."""
    for path, name in files(root, (".v",)):
        text = path.read_text(encoding="utf-8")
        text = re.sub(r"\(\*.*?\*\)", lambda match: re.sub(r"[^\n]", " ", match.group(0)), text, flags=re.S)
        for number, line in enumerate(text.splitlines(), 1):
            if re.search(r"\b(Admitted|Axiom|Axioms|admit|Conjecture|Parameter|Parameters|bypass_check)\b", line):
                yield f"{name}:{number}: {line.strip()}"


def wiring(root):
    """Every source is named by the nearest CMakeLists.txt, or with its folder by another; every header guards itself."""
    everywhere = "\n".join(path.read_text(encoding="utf-8") for folder in FOLDERS
                           for path in (root / folder).rglob("CMakeLists.txt"))
    for path, name in files(root, CODE):
        if path.suffix == ".hpp" and "#pragma once" not in path.read_text(encoding="utf-8"):
            yield f"{name}:1: no #pragma once"
        if path.suffix == ".hpp" or name.startswith("tests/package/"):
            continue
        folder = next((folder for folder in path.parents if (folder / "CMakeLists.txt").is_file()), root)
        lists = folder / "CMakeLists.txt"
        wanted = re.escape(str(path.relative_to(folder)))
        if name.startswith(("tests/", "bench/")):
            wanted += "|" + re.escape(path.stem)  # foreach(name ...) over ${name}.cpp
        named = lists.is_file() and re.search(rf"(?<![\w/.])({wanted})(?![\w/])", lists.read_text(encoding="utf-8"))
        if not named and f"../{path.parent.name}/{path.name}" not in everywhere:
            yield f"{name}:1: no CMakeLists.txt names it"


RULES = {rule.__name__: rule for rule in (layers, lengths, words, proofs, wiring)}


def self_test():
    """One bad file per clause: each must be found, and a good tree must be clean."""
    unfinished = "TO" + "DO"
    good = {
        "CMakeLists.txt": "src/plan.cpp src/layout.cpp synth/rules.cpp backends/local/local.cpp",
        "include/reshard/mesh.hpp": '#pragma once\n#include "reshard/integer.hpp"\n',
        "src/plan.cpp": '#include "reshard/plan.hpp"\n#include "reshard/text.hpp"\n#include "scan.hpp"\n',
        "src/scan.hpp": "#pragma once\n",
        "synth/rules.cpp": '#include <utility>\n#include "reshard/check.hpp"\n// a handler in a comment\n',
        "backends/local/local.cpp": '#include "src/scan.hpp"\n#include "reshard/local.hpp"\nMPI_Errhandler h;\n',
        "proofs/Step.v": "(* no Axiom here *)\nLemma x : True.\n",
    }
    bad = (
        ("layers", "include/reshard/mesh.hpp", '#pragma once\n#include "reshard/layout.hpp"\n'),
        ("layers", "include/reshard/plan.hpp", '#pragma once\n#include "src/scan.hpp"\n'),
        ("layers", "include/reshard/nowhere.hpp", "#pragma once\n"),
        ("layers", "src/layout.cpp", '#include "reshard/step.hpp"\n'),
        ("layers", "src/plan.cpp", "#include <iostream>\n"),
        ("layers", "synth/rules.cpp", '#include "reshard/backend.hpp"\n'),
        ("layers", "synth/rules.cpp", '#include "src/scan.hpp"\n'),
        ("layers", "synth/rules.cpp", "#include <random>\n"),
        ("layers", "backends/local/local.cpp", '#include "reshard/synthesize.hpp"\n'),
        ("layers", "backends/local/local.cpp", '#include "reshard/mpi.hpp"\n'),
        ("layers", "backends/local/local.cpp", '#include "synth/rules.hpp"\n'),
        ("lengths", "src/scan.hpp", "#pragma once\n" + "\n" * 200),
        ("lengths", "src/plan.cpp", "\n" * 401),
        ("words", "src/plan.cpp", "class PlanManager;\n"),
        ("words", "src/plan.cpp", "int src_bytes;\n"),
        ("words", "src/plan.cpp", f"// {unfinished}: later\n"),
        ("proofs", "proofs/Step.v", "Axiom x : False.\n"),
        ("proofs", "proofs/Step.v", "Proof. Admitted.\n"),
        ("wiring", "src/forgotten.cpp", "\n"),
        ("wiring", "src/scan.hpp", "\n"),
    )
    missed = []
    for rule, name, text in (("", "", ""),) + bad:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for file, content in {**good, **({name: text} if name else {})}.items():
                (root / file).parent.mkdir(parents=True, exist_ok=True)
                (root / file).write_text(content)
            for other, check in RULES.items():
                found = list(check(root))
                if bool(found) != (other == rule):
                    missed.append(f"{rule or 'good tree'} / {name} / {text[:40]!r}: {other} said {found}")
    return missed


def main(arguments):
    if not arguments or arguments[0] not in [*RULES, "self_test"]:
        print(f"usage: tidy.py {'|'.join(RULES)}|self_test [root]", file=sys.stderr)
        return 2
    root = pathlib.Path(arguments[1] if len(arguments) > 1 else __file__ + "/../../..").resolve()
    found = self_test() if arguments[0] == "self_test" else list(RULES[arguments[0]](root))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
