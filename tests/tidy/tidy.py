#!/usr/bin/env python3
"""House rules, one test each: tidy.py RULE [ROOT]. Prints `file:line: fault` and exits 1 if a rule is broken.
`tidy.py self_test` breaks each rule once in a tree of its own and expects it to be found."""

import os
import pathlib
import re
import sys
import tempfile

sys.dont_write_bytecode = True  # of the module beside this one
import prose as idiom

FOLDERS = ("include", "src", "synth", "backends", "files", "live", "report", "tool", "bindings", "python", "tests", "bench", "proofs")
PROSE_FOLDERS = (*FOLDERS, "docs", ".github", "packaging")
HEADER = (".hpp", ".h")
CODE = (*HEADER, ".cpp", ".cu", ".c")

# Public headers from the inside out: each sees the headers in its own line's list and everything that they see.
HEADERS = {
    "planner/integer": [],
    "result": [],
    "planner/network": ["planner/integer", "result"],
    "mesh": ["planner/integer", "result"],
    "planner/atoms": ["mesh"],
    "planner/tile": ["planner/integer", "result"],
    "planner/storage": ["planner/tile"],
    "layout": ["planner/atoms", "planner/storage"],
    "planner/view": ["layout"],
    "planner/refinement": ["layout"],
    "planner/normalize_devices": ["layout"],
    "planner/step": ["layout"],
    "halo/halo": ["layout"],
    "plan": ["planner/network", "planner/step"],
    "planner/adjoint": ["plan"],
    "planner/part_of_copy": ["plan"],
    "text": ["plan"],
    "notations/notation": ["text"],
    "notations/hlo": ["text"],
    "planner/schedule": ["plan"],
    "planner/simulate": ["plan"],
    "planner/capabilities": ["planner/integer"],
    "execution": ["plan", "planner/capabilities"],
    "check": ["execution"],
    "planner/list": ["check"],
    "planner/cost": ["check"],
    "problem": ["planner/cost"],
    "boxes/boxes": ["planner/cost"],
    "model/digest": ["model/rows"],
    "model/rows": ["problem"],
    "model/address": ["model/rows"],
    "model/transfer": ["model/rows"],
    "model/pack": ["model/transfer"],
    "model/pages": ["model/address"],
    "model/rules": ["notations/notation", "model/rows"],
    "model/model_rows": ["model/rules"],
    "emit/program": ["planner/schedule", "problem"],
    "emit/interpret": ["planner/simulate", "emit/program"],
    "emit/write": ["emit/program"],
    "synthesize": ["problem", "planner/list"],
    "planner/plan_cache": ["synthesize"],
    "program/program": ["layout"],
    "program/judge": ["planner/cost", "program/program"],
    "program/schedule": ["program/judge", "synthesize"],
    "program/generate": ["program/program"],
    "program/hlo": ["planner/cost", "program/program"],
    "program/script": ["program/judge"],
    "backends/run": ["planner/integer", "result"],
    "backends/backend": ["backends/run", "planner/schedule", "planner/capabilities"],
    "elements": ["layout"],
    "execute": ["backends/backend", "planner/list", "elements"],
    "move_options": ["planner/integer"],
    "program/run": ["program/judge", "execute"],
    "redistribute": ["execute", "move_options", "planner/plan_cache"],
    "boxes/exchange": ["backends/backend", "elements", "boxes/boxes"],
    "boxes/nodes": ["boxes/boxes", "problem"],
    "boxes/rebuild": ["backends/backend", "boxes/boxes"],
    "halo/plan": ["halo/halo", "planner/cost"],
    "halo/exchange": ["backends/backend", "elements", "halo/plan"],
    "halo/sum": ["backends/backend", "elements", "halo/halo"],
    "halo/rows": ["halo/plan", "model/rows"],
    "padding": ["execute", "problem"],
    "backends/local": ["backends/backend", "elements", "move_options"],
    "backends/mpi": ["backends/backend", "elements", "move_options"],
    "backends/nccl": ["backends/backend"],
    "overlap/choose_pieces": ["planner/cost"],
    "overlap/measure_work": ["planner/integer"],
    "files/checkpoint": ["model/rules"],
    "files/convert": ["files/checkpoint"],
    "files/load": ["files/convert", "backends/backend"],
    "files/program": ["program/script"],
    "live/group": ["planner/integer", "result"],
    "live/status": ["layout"],
    "live/publish": ["live/group", "live/status"],
    "live/subscribe": ["live/group", "layout", "model/rows"],
    "live/rules": ["live/status", "live/subscribe", "model/rules"],
    "reshard": ["redistribute", "text"],
    "c/tables": [],
    "c/base": ["c/tables"],
    "c/layout": ["c/base"],
    "c/plan": ["c/layout"],
    "c/rows": ["c/layout"],
    "c/digest": ["c/rows"],
    "c/pages": ["c/rows"],
    "c/run": ["c/plan"],
    "c/change": ["c/run"],
    "c/halo": ["c/run"],
    "c/boxes": ["c/run"],
    "c": ["c/boxes", "c/change", "c/digest", "c/halo", "c/pages"],
    "c/scalapack": [],
    "c/files": ["c/run"],
    "c/program": ["c/run"],
    "c/live": ["c/layout"],
    "c_mpi": ["c"],
    "c_nccl": ["c"],
}
PLANNER = ["text", "planner/view", "planner/refinement", "planner/normalize_devices", "planner/simulate", "planner/schedule",
           "planner/cost", "planner/list"]
ALL = list(HEADERS)

# Rooms from the ground up: the rooms below that the files of a room may see, and the public headers, each with the
# headers that it sees. Every room sees src/base and src/tables. Includes of a private header count as includes of the
# file itself.
KERNELS = ["src/copy/kernels", "src/copy"]
TRANSPORT = ["backends/common", "src/execute", "src/schedule", *KERNELS]
MPI = ["backends/mpi/base", "backends/mpi/shm", "backends/mpi/messages", "backends/mpi"]
NCCL = ["backends/nccl/base", "backends/nccl/kernels", "backends/nccl/prepare", "backends/nccl/launch", "backends/nccl"]
FILES = ["files/base", "files/formats", "files/engine", "files", "files/ranks"]
TOOL = ["tool/console", "tool/request", "tool/ranks", "tool/output", "tool/data", "tool/commands", "tool/commands/arguments",
        "tool/commands/calibrate", "tool/commands/explain", "tool/commands/halos", "tool/commands/live",
        "tool/commands/schedule", "tool/browser", "tool"]
C = ["bindings/c", "bindings/c/files", "bindings/c/live", "bindings/c/mpi", "bindings/c/nccl"]
ROOMS = {
    "src/base": ([], ["planner/integer", "result"]),
    "src/tables": ([], ["problem"]),
    "src/layout": ([], ["planner/view", "planner/refinement", "planner/normalize_devices", "halo/halo"]),
    "src/plan": (["src/layout"], ["planner/refinement", "planner/view", "planner/simulate", "planner/step", "planner/part_of_copy",
                                    "planner/adjoint", "check"]),
    "src/price/tiles": (["src/layout"], ["planner/refinement", "layout"]),
    "src/price": (["src/layout", "src/price/tiles", "src/plan"], ["planner/refinement", "planner/cost", "planner/part_of_copy"]),
    "src/judge": (["src/plan", "src/price"],
                  ["text", "planner/cost", "planner/list", "planner/part_of_copy", "program/judge"]),
    "src/copy/kernels": ([], []),
    "src/copy": (["src/copy/kernels"], ["backends/backend"]),
    "src/schedule": (["src/layout", "src/plan", *KERNELS],
                     ["backends/backend", "execution", "planner/view", "planner/normalize_devices", "halo/halo"]),
    "src/boxes": (["src/layout", "src/plan", "src/price/tiles", "src/price", "src/schedule", *KERNELS], ["text", "boxes/nodes", "boxes/rebuild"]),
    "src/halo": (["src/plan", "src/price", "src/schedule", *KERNELS], ["halo/plan", "backends/backend"]),
    "src/text": (["src/layout"], ["text", "halo/halo", "planner/refinement", "planner/view", "planner/cost", "planner/schedule"]),
    "src/notations": (["src/layout", "src/text"], ["notations/notation", "notations/hlo", "planner/refinement"]),
    "src/model/rules": (["src/layout", "src/text"], ["text", "model/model_rows", "model/rules", "planner/view"]),
    "src/model": (["src/text", "src/schedule", "src/plan", "src/model/rules", *KERNELS],
                  ["model/digest", "model/model_rows", "model/address", "model/pages", "model/transfer", "backends/backend",
                   "planner/view", "planner/normalize_devices"]),
    "src/emit": ([], ["text", "planner/refinement", "planner/view", "emit/interpret", "emit/write"]),
    "src/execute": (["src/plan", "src/judge", "src/schedule", "src/halo", "src/model", *KERNELS],
                    ["boxes/nodes", "execute", "halo/exchange", "halo/rows", "halo/sum", "text", "model/pack", "overlap/measure_work", "padding",
                     "planner/view", "redistribute", "planner/part_of_copy"]),
    "src/execute/boxes": (["src/plan", "src/judge", "src/schedule", "src/boxes", "src/execute", *KERNELS],
                          ["execute", "boxes/exchange", "boxes/nodes", "boxes/rebuild", "text"]),
    "src/execute/program": ([], ["text", "program/run", "program/script"]),
    "synth/search": (["src/plan", "src/price"], [*PLANNER, "synthesize"]),
    "synth/rules": (["src/price", "synth/search"], [*PLANNER, "synthesize"]),
    "synth/overlap": (["src/plan", "src/price"], ["overlap/choose_pieces", "problem"]),
    "synth/list": (["src/judge", "synth/overlap"], [*PLANNER, "synthesize"]),
    "synth/program/hlo": (["src/text", "src/notations"], ["text", "synthesize", "program/hlo"]),
    "synth/program": (["src/text", "src/price"],
                      [*PLANNER, "overlap/choose_pieces", "program/schedule", "program/generate", "program/script"]),
    "synth": (["src/price", "synth/search", "synth/rules", "synth/list", "synth/overlap"], [*PLANNER, "planner/plan_cache"]),
    "backends/common": ([], ["result", "backends/backend"]),
    "backends/local": (TRANSPORT, ["backends/local"]),
    **{room: ([*TRANSPORT, *MPI[:floor]], ["backends/mpi"]) for floor, room in enumerate(MPI)},
    "backends/baseline": ([*MPI, *TRANSPORT], ["backends/mpi"]),
    **{room: ([*TRANSPORT, *NCCL[:floor]], ["backends/nccl"]) for floor, room in enumerate(NCCL)},
    "backends/doors": (["backends/local", *MPI], ["backends/local", "backends/mpi", "redistribute"]),
    **{room: ([*KERNELS, "src/text", "src/model", "src/model/rules", *FILES[:floor]], ["files/load", "files/program", "redistribute"])
       for floor, room in enumerate(FILES)},
    "live/protocol": ([], ["model/digest"]),
    "live/transport": (["live/protocol"], ["live/group"]),
    "live": (["live/protocol", "live/transport", "src/model", "src/model/rules", *KERNELS], ["text", "planner/view", "model/digest", "live/publish", "live/rules", "live/status", "live/subscribe"]),
    "report": ([], ALL),
    **{room: ([*KERNELS, "src/schedule", "src/text", "files/base", "files/formats", "files/engine", "files",
               "backends/baseline", *MPI,
               *TRANSPORT, "report", *TOOL[:floor]], ALL) for floor, room in enumerate(TOOL)},
    **{room: (["report", *C[:floor]], ALL) for floor, room in enumerate(C)},
    "bindings/scalapack": ([], ALL),
    "python/bindings": (["report"], ALL),
    "python/bindings/halos": (["python/bindings", "report"], ALL),
    "python/bindings/boxes": (["python/bindings", "python/bindings/halos", "report"], ALL),
    "python/bindings/live": (["report", "python/bindings"], ALL),
    "python/bindings/programs": (["report", "python/bindings"], ALL),
    "python/bindings/ranks": (["report", "python/bindings", "python/bindings/programs"], ALL),
}
GROUND = ["src/base", "src/tables"]
ROOMS = {room: ([*GROUND[:GROUND.index(room) if room in GROUND else None], *below], public)
         for room, (below, public) in ROOMS.items()}
FREE = ("tests/", "bench/")  # these see everything

# The core and the search use no I/O, clock, randomness, threads or MPI.
PURE = ("src/tables", "src/layout", "src/text", "src/notations", "src/plan", "src/price", "src/judge", "src/schedule",
        "src/halo", "src/copy",
        "src/model", "src/emit", "synth", "live/protocol")
IMPURE_HEADERS = ("include/reshard/files/", "include/reshard/live/", "include/reshard/backends/", "include/reshard/reshard",
                  "include/reshard/c_mpi", "include/reshard/planner/plan_cache", "synth/plan_cache")
NO_SYSTEM = ("iostream", "ostream", "istream", "fstream", "cstdio", "stdio.h", "filesystem", "chrono", "ctime", "random",
             "thread", "mutex", "shared_mutex", "condition_variable", "atomic", "future", "mpi.h")
UNITS_MAX = 20  # in a folder; a header and its source count once
BANNED_WORD = re.compile(r"\b\w*(manager|helper|util|handler)\w*", re.I)
ALLOWED_WORD = re.compile(r"^MPI_|^utilit(y|ies)$|^utilization$|err(or)?_?handler", re.I)  # words of MPI, JSON and UCX
BANNED_NAME = re.compile(r"\b(src|dst)(_\w*)?\b|\b\w+_(src|dst)\b")
NAMED_PATH = re.compile(r"(?<![\w./<-])((?:include|src|synth|backends|files|live|report|tool|bindings|tests|bench|proofs|docs)/[\w/]*\w(?:\.\w+)?)"
                        r"(?![\w/*]|\.[\w*])")
LINK = re.compile(r"\]\(([^)#\s]+)")
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")


def files(root, suffixes):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in suffixes and path.is_file() and "/." not in str(path.relative_to(root)):
                yield path, str(path.relative_to(root))


def lines(path):
    return enumerate(path.read_text(encoding="utf-8").splitlines(), 1)


def public_name(path):
    """The name of a public header in the table of headers."""
    return os.path.splitext(path)[0][len("include/reshard/"):]


def seen_by(headers):
    """The public headers that a file sees if it may include `headers`, closed."""
    seen = set()
    todo = list(headers)
    while todo:
        one = todo.pop()
        if one not in seen:
            seen.add(one)
            todo += HEADERS[one]
    return seen


def includes(root, name):
    """(line, path in the tree or None) of each quoted include; private headers are named from the root."""
    for number, line in lines(root / name):
        quoted = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
        if quoted:
            include = quoted.group(1)
            places = (f"include/{include}",) if include.startswith("reshard/") else (include,)
            yield number, include, next((place for place in places if (root / place).is_file()), None)


def everything_included(root, name, known):
    """Each file that `name` includes, at any depth."""
    if name not in known:
        known[name] = set()
        for _, _, path in includes(root, name):
            if path is not None:
                known[name] |= {path} | everything_included(root, path, known)
    return known[name]


def allowed(name):
    """The rooms and the public headers that a file may see. A free file has None."""
    if name.startswith(FREE):
        return None
    if name.startswith("include/"):
        header = public_name(name)
        return (), seen_by(HEADERS.get(header, ()))
    room = os.path.dirname(name)
    below, public = ROOMS.get(room, ((), ()))
    return (room, *below), seen_by(public)


def layers(root):
    """Files include only the rooms below them, and the table lists rooms from the ground up."""
    order = list(ROOMS)
    for number, room in enumerate(order):
        for below in ROOMS[room][0]:
            if below in order[number:]:
                yield f"{room}:1: listed below {below}, which it sees"
    known = {}
    for path, name in files(root, CODE):
        may = allowed(name)
        if may is None:
            continue
        header = public_name(name) if name.startswith("include/") else None
        if header is not None and header not in HEADERS:
            yield f"{name}:1: a public header that the table of headers does not know"
            continue
        if header is None and os.path.dirname(name) not in ROOMS:
            yield f"{name}:1: a folder that the table of rooms does not know"
            continue
        for number, include, place in includes(root, name):
            if place is None:
                yield f"{name}:{number}: {include} is nowhere in the tree"
                continue
            for seen in sorted({place} | everything_included(root, place, known)):
                way = "" if seen == place else f" through {include}"
                if seen.startswith("include/reshard/"):
                    if public_name(seen) not in may[1]:
                        yield f"{name}:{number}: may not see {seen}{way}"
                elif os.path.dirname(seen) not in may[0]:
                    yield f"{name}:{number}: may not see {seen}{way}"
        pure = name.startswith(PURE) or (header is not None)
        for number, line in lines(path):
            system = re.match(r"\s*#\s*include\s*<([^>]+)>", line)
            if system and system.group(1) in NO_SYSTEM and pure and not name.startswith(IMPURE_HEADERS):
                yield f"{name}:{number}: <{system.group(1)}>: no I/O, clock, randomness, threads or MPI here"


def rooms(root):
    """No folder holds more than 20 units at one level, outside proofs, cases and seeds."""
    units = {}
    for folder in FOLDERS:
        for path in (root / folder).rglob("*"):
            name = str(path.relative_to(root))
            if path.is_file() and not name.startswith(("proofs/", "tests/cases/", "tests/fuzz/seeds/")) \
                    and "__pycache__" not in name:
                units.setdefault(os.path.dirname(name), set()).add(path.stem if path.suffix in CODE else path.name)
    for folder, held in sorted(units.items()):
        if len(held) > UNITS_MAX:
            yield f"{folder}:1: {len(held)} files at one level, at most {UNITS_MAX}"


def lengths(root):
    """Headers have at most 200 lines, sources at most 400. clang-format holds the columns."""
    for path, name in files(root, CODE):
        most = 200 if path.suffix in HEADER else 400
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
    """No axiom, no open proof, and a statement about each planning rule in proofs/README.md."""
    table, said = root / "synth/rule_table.cpp", root / "proofs/README.md"
    if table.is_file() and said.is_file():
        rows = [row.split("|")[1] for row in said.read_text(encoding="utf-8").splitlines() if row.startswith("| `")]
        for rule in re.findall(r'\{\{"(\w+)",', table.read_text(encoding="utf-8")):
            if not any(f"`{rule}`" in row for row in rows):
                yield f"proofs/README.md:1: nothing is said of the rule {rule}"
    for path, name in files(root, (".v",)):
        text = path.read_text(encoding="utf-8")
        text = re.sub(r"\(\*.*?\*\)", lambda match: re.sub(r"[^\n]", " ", match.group(0)), text, flags=re.S)
        for number, line in enumerate(text.splitlines(), 1):
            if re.search(r"\b(Admitted|Axiom|Axioms|admit|Conjecture|Parameter|Parameters|bypass_check)\b", line):
                yield f"{name}:{number}: {line.strip()}"


def wiring(root):
    """The nearest CMakeLists.txt names every source, or another one names it with its folder. Every header guards itself."""
    everywhere = "\n".join(path.read_text(encoding="utf-8") for folder in FOLDERS
                           for path in (root / folder).rglob("CMakeLists.txt"))
    for path, name in files(root, CODE):
        if path.suffix == ".hpp" and "#pragma once" not in path.read_text(encoding="utf-8"):
            yield f"{name}:1: no #pragma once"
        if path.suffix in HEADER or name.startswith("tests/package/"):
            continue
        folder = next((folder for folder in path.parents if (folder / "CMakeLists.txt").is_file()), root)
        lists = folder / "CMakeLists.txt"
        wanted = re.escape(str(path.relative_to(folder)))
        if name.startswith(("tests/", "bench/")):
            wanted += "|" + re.escape(path.stem) + "|" + re.escape(str(path.relative_to(folder).with_suffix("")))  # foreach(name ...)
        named = lists.is_file() and re.search(rf"(?<![\w/.])({wanted})(?![\w/])", lists.read_text(encoding="utf-8"))
        if not named and f"../{path.parent.name}/{path.name}" not in everywhere:
            yield f"{name}:1: no CMakeLists.txt names it"


def paths(root):
    """A path that a comment or a page names exists: from the root, from include/ or beside the file, with or without its
    ending. A source that a page names alone exists, too."""
    names = {path.name for path, _ in files(root, CODE + (".py", ".v"))}
    texts = [(path, name) for path, name in files(root, CODE + (".py", ".md", ".v"))
             if not name.startswith(("tests/tidy/", "tests/readme/"))]
    texts += [(path, str(path.relative_to(root))) for folder in ("", ".github", "docs")
              for path in sorted((root / folder).glob("*.md")) if path.name != "CHANGELOG.md"]
    for path, name in texts:
        for number, line in lines(path):
            said = line if path.suffix in (".md", ".v") else (re.search(r"(//|#)[^\n]*", line) or [""])[0]
            named = NAMED_PATH.findall(said)
            if path.suffix == ".md":
                named += [link for link in LINK.findall(line) if "://" not in link]
                for found in re.findall(r"`(\w+\.(?:hpp|cpp|cu|h|c|v))`", line):
                    if found not in names:
                        yield f"{name}:{number}: there is no {found}"
            for found in named:
                places = (root, root / "include", path.parent)
                if not any((place / (found + end)).exists() for place in places for end in ("", ".hpp", ".cpp", ".h")):
                    yield f"{name}:{number}: there is no {found}"
    yield from missing_in_the_house(root)


def missing_in_the_house(root):
    """The picture of the house in HACKING shows every room and every public header."""
    page = root / "docs/HACKING.md"
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    picture = set(re.findall(r"\w+", text.partition("\n## The house\n")[2]))
    for name in [*ROOMS, *(f"include/reshard/{header}" for header in HEADERS)] if picture else ():
        if (root / name).is_dir() or (root / f"{name}.hpp").is_file():
            for word in set(name.split("/")) - picture:
                yield f"docs/HACKING.md:1: The house does not show {name}: no {word}"


def prose(root):
    """Plain English: the idiom of each room is within its limit, and no limit is higher than needed."""
    return idiom.faults(root, PROSE_FOLDERS)


RULES = {rule.__name__: rule for rule in (layers, rooms, lengths, words, proofs, wiring, paths, prose)}


def self_test():
    """One bad file per clause: each must be found, and a good tree must be clean."""
    unfinished = "TO" + "DO"
    good = {
        "CMakeLists.txt": "src/plan/plan.cpp src/layout/layout.cpp synth/rules/rules.cpp backends/local/local.cpp",
        "include/reshard/planner/integer.hpp": "#pragma once\n",
        "include/reshard/mesh.hpp": '#pragma once\n#include "reshard/planner/integer.hpp"\n',
        "include/reshard/check.hpp": "#pragma once\n",
        "include/reshard/backends/local.hpp": "#pragma once\n",
        "include/reshard/backends/mpi.hpp": "#pragma once\n",
        "include/reshard/execute.hpp": "#pragma once\n",
        "include/reshard/backends/backend.hpp": "#pragma once\n",
        "src/plan/plan.cpp": '#include "reshard/check.hpp"\n#include "src/plan/scan.hpp"\n',
        "src/plan/scan.hpp": "#pragma once\n",
        "src/layout/digits.hpp": "#pragma once\n",
        "src/copy/copy.hpp": '#pragma once\n#include "reshard/backends/backend.hpp"\n',
        "synth/rules/rules.hpp": "#pragma once\n",
        "synth/rules/rules.cpp": '#include <utility>\n#include "reshard/check.hpp"\n// a handler in a comment\n',
        "backends/local/local.cpp": '#include "src/copy/copy.hpp"\n#include "reshard/backends/local.hpp"\nMPI_Errhandler h;\n',
        "proofs/Step.v": "(* no Axiom here *)\nLemma x : True.\n",
    }
    bad = (
        ("layers", "include/reshard/mesh.hpp", '#pragma once\n#include "reshard/check.hpp"\n'),
        ("layers", "include/reshard/check.hpp", '#pragma once\n#include "src/plan/scan.hpp"\n'),
        ("layers", "include/reshard/nowhere.hpp", "#pragma once\n"),
        ("layers", "src/nowhere/scan.hpp", "#pragma once\n"),
        ("layers", "src/plan/plan.cpp", '#include "plan/missing.hpp"\n'),
        ("layers", "src/plan/scan.hpp", '#pragma once\n#include "reshard/backends/backend.hpp"\n'),
        ("layers", "src/layout/digits.hpp", '#pragma once\n#include "src/plan/scan.hpp"\n'),
        ("layers", "src/plan/plan.cpp", "#include <iostream>\n"),
        ("layers", "synth/rules/rules.cpp", '#include "reshard/backends/backend.hpp"\n'),
        ("layers", "synth/rules/rules.cpp", '#include "src/plan/scan.hpp"\n'),
        ("layers", "synth/rules/rules.cpp", "#include <random>\n"),
        ("layers", "backends/local/local.cpp", '#include "reshard/execute.hpp"\n'),
        ("layers", "backends/local/local.cpp", '#include "reshard/backends/mpi.hpp"\n'),
        ("layers", "backends/local/local.cpp", '#include "synth/rules/rules.hpp"\n'),
        ("rooms", "src/plan/README.md", "many"),
        ("lengths", "src/plan/scan.hpp", "#pragma once\n" + "\n" * 200),
        ("lengths", "src/plan/plan.cpp", "\n" * 401),
        ("words", "src/plan/plan.cpp", "class PlanManager;\n"),
        ("words", "src/plan/plan.cpp", "int src_bytes;\n"),
        ("words", "src/plan/plan.cpp", f"// {unfinished}: later\n"),
        ("proofs", "proofs/Step.v", "Axiom x : False.\n"),
        ("proofs", "proofs/Step.v", "Proof. Admitted.\n"),
        ("paths", "src/plan/scan.hpp", "#pragma once  // as src/plan/gone.hpp\n"),
        ("paths", "README.md", "see `src/gone`\n"),
        ("paths", "docs/HACKING.md", "\n## The house\nsrc plan copy synth rules backends local include reshard mesh\n"),
        ("paths", "docs/page.md", "see [that](gone.md)\n"),
        ("paths", "docs/page.md", "see `gone.hpp`\n"),
        ("prose", "README.md", "Of the plans one is left.\n\nWhat it costs is said.\n"),
        ("prose", "src/plan/scan.hpp", "#pragma once\n/// The steps of which it is made.\n/// Likewise for tiles.\n"),
        ("wiring", "src/plan/forgotten.cpp", "\n"),
        ("wiring", "src/plan/scan.hpp", "\n"),
    )
    missed = []
    idiom.LIMITS.clear()  # they are for this tree
    for rule, name, text in (("", "", ""),) + bad:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for file, content in {**good, **({name: text} if name else {})}.items():
                (root / file).parent.mkdir(parents=True, exist_ok=True)
                (root / file).write_text(content)
                for number in range(UNITS_MAX if content == "many" else 0):
                    (root / file).with_name(f"{number}.md").write_text("")
            if not rule and not list(idiom.faults(root, PROSE_FOLDERS, {"synth/rules": 50.0})):
                missed.append("a limit of the idiom that is too high was not found")
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
