#!/usr/bin/env python3
"""Writes what C and Fortran have of the tables beside this file: generate.py [--check]. With --check it writes nothing
and fails if a committed file differs."""

import pathlib
import re
import sys
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SOURCE = "src/tables/generate.py writes this file from the tables beside it"
TYPES = {"choice": "int32_t", "flag": "int32_t", "execution": "int32_t", "limit": "int64_t", "list_bytes": "int64_t",
         "count": "int64_t", "machine": "const struct reshard_machine*", "names": "const char*"}


def rows(table):
    """The rows of a table: the macro after RESHARD_, and its arguments."""
    for macro, text in re.findall(r"^RESHARD_(\w+)\((.*)\)$", (HERE / table).read_text(encoding="utf-8"), re.MULTILINE):
        arguments, depth, quoted = [""], 0, False
        for char in text:
            quoted ^= char == '"'
            depth += 0 if quoted else (char in "([") - (char in ")]")
            if char == "," and depth == 0 and not quoted:
                arguments.append("")
            else:
                arguments[-1] += char
        yield macro, [argument.strip().strip('"') for argument in arguments]


def values(table, macro, prefix=""):
    """An enumeration of C: names, numbers and what they mean."""
    return [(f"RESHARD_{prefix}{row[0].upper()}", row[-1]) for kind, row in rows(table) if kind == macro]


def options():
    """The fields of reshard_options: type, name, initial value, about."""
    for macro, row in rows("options.def"):
        if macro == "C_RESERVED":
            yield "int32_t", row[0], "0", "0"
        if macro == "C_OPTION":
            yield f"{row[0]}*", row[1], "NULL", row[2]
        if macro not in ("OPTION", "OTHER_OPTION"):
            continue
        kind, name, _, _, about = row
        if kind == "capabilities":
            yield from capabilities()
        elif kind == "choice":
            yield TYPES[kind], name, values("options.def", name.upper())[0][0], f"a ::reshard_{name}"
        elif kind != "steps":
            initial = "-1" if kind == "limit" else "NULL" if TYPES[kind].endswith("*") else "0"
            yield TYPES[kind], name, initial, about + ("; commas between them" if kind == "names" else "")


def capabilities():
    for macro, row in rows("capabilities.def"):
        if macro == "RESERVED":
            yield "int32_t", row[0], "0", "0"
        if macro == "CAPABILITY":
            kind, name, initial, about = row
            yield TYPES[kind], name, {"false": "0"}.get(initial, initial), about


def verdict():
    """The fields of reshard_verdict, in the order of their slots."""
    fields = {}
    for macro, row in rows("verdict.def"):
        if macro == "RESERVED":
            fields[int(row[0])] = ("int32_t", "reserved", "0", "0")
        elif row[0] != "_":
            slot, name, _, _, kind, _, about = row
            fields[int(slot)] = (TYPES[kind], name, "0", "a ::reshard_execution" if kind == "execution" else about)
    return [fields[slot] for slot in sorted(fields)]


def aligned(pairs):
    """Declarations, and their comments in one column."""
    width = max(len(declared) for declared, _ in pairs) + 6
    for declared, about in pairs:
        for line in textwrap.wrap(about, 115 - width):
            yield f"    {declared}".ljust(width) + f"///< {line}"
            declared = ""


def enum(name, about, members):
    pairs = [(f"{member} = {number}{',' * (number + 1 < len(members))}", meaning)
             for number, (member, meaning) in enumerate(members)]
    return [f"/// {about}", f"enum reshard_{name} {{", *aligned(pairs), "};", ""]


def struct(name, about, fields):
    lines = textwrap.wrap(about, 116, initial_indent="/// ", subsequent_indent="/// ")
    lines += [f"typedef struct reshard_{name} {{", *aligned([("size_t size;", f"sizeof(reshard_{name})"),
              *((f"{kind} {field};", meaning) for kind, field, _, meaning in fields)])]
    initial = ", ".join([f"sizeof(reshard_{name})", *(value for _, _, value, _ in fields)])
    return [*lines, f"}} reshard_{name};", "", "/// The defaults.", f"#define RESHARD_{name.upper()}_INITIALIZER \\",
            f"    {{ {initial} }}", ""]


def codes():
    return [("RESHARD_OK", "it did not fail"), *values("codes.def", "CODE"), *values("codes.def", "C_CODE")]


def c_header():
    lines = ["/// \\file", f"/// Enumerations and structures of the C interface. {SOURCE}.",
             "#ifndef RESHARD_C_TABLES_H", "#define RESHARD_C_TABLES_H", "", "#include <stddef.h>", "#include <stdint.h>", ""]
    lines += enum("code", "Why a call failed, coarse enough to switch on.", codes())
    lines += enum("objective", "What is least.", values("options.def", "OBJECTIVE"))
    lines += enum("vocabulary", "Which steps a plan may have.", values("options.def", "VOCABULARY"))
    lines += enum("execution", "How a plan runs.", values("options.def", "EXECUTION"))
    lines += struct("options", "What a planner is asked beside the two ends. Bytes are bytes of a device. -1 is no limit, "
                    "and NULL is nothing given. A NULL in place of the structure means the defaults.", list(options()))
    lines += struct("verdict", "What the judge derived from a plan. Bytes are maxima over devices.", verdict())
    return "\n".join([*lines, "#endif", ""])


def fortran_type(name, about, fields):
    lines = [f"    ! {about}", f"    type, bind(c), public :: reshard_{name}", "        integer(c_size_t), private :: size = 0"]
    for kind, field, initial, _ in fields:
        hidden = ", private" if field == "reserved" or kind.endswith("*") else ""
        of_c = "type(c_ptr)" if kind.endswith("*") else f"integer(c_{kind})"
        value = {"NULL": "c_null_ptr"}.get(initial, initial.lower())
        lines.append(f"        {of_c}{hidden} :: {field} = {value}")
    return [*lines, "    end type", ""]


def fortran_constants(kind, names):
    text = ", ".join(f"reshard_{name}\0=\0{number}" for number, name in enumerate(names))
    lines = [line.replace("\0", " ") for line in textwrap.wrap(text, 100)]
    return [f"    integer({kind}), parameter, public :: &", *(f"        {line} &" for line in lines[:-1]), f"        {lines[-1]}"]


def fortran_include():
    named = [row[1] for macro, row in rows("codes.def") if macro in ("CODE", "C_CODE")]
    lines = [f"    ! {SOURCE}.", "    ! Why a call failed (enum reshard_code)."]
    lines += fortran_constants("c_int", ["ok", *named])
    for name in ("objective", "vocabulary"):
        chosen = [row[0] for macro, row in rows("options.def") if macro == name.upper()]
        lines += fortran_constants("c_int32_t", chosen)
    lines += ["", *fortran_type("options", "What a planner is asked beside the two ends (struct reshard_options). Bytes are "
                                "of a device; -1 is no limit.", list(options()))]
    lines += fortran_type("verdict", "What the judge derived (struct reshard_verdict). Bytes; maxima over devices.", verdict())
    return "\n".join(lines)


def main(arguments):
    wrong = 0
    for name, text in (("include/reshard/c/tables.h", c_header()), ("bindings/fortran/reshard_tables.inc", fortran_include())):
        path = ROOT / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        if "--check" in arguments:
            print(f"{name}:1: not what the tables say; run src/tables/generate.py")
            wrong = 1
        else:
            path.write_text(text, encoding="utf-8")
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
