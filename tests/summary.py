#!/usr/bin/env python3
"""Adds up the test results of the presets named on the command line ("!dev": its build failed). Prints the tests that were
skipped or not built and why, then the end of each failed test's output and the beginning of a sanitizer's report. Ends with
`N passed, N failed, N skipped`. Exits 0 if no test failed, otherwise 1."""

import pathlib
import re
import sys
import xml.etree.ElementTree

LINES_MAX = 60  # from the ends of the failed tests' outputs, together: a report that is cut loses its middle
LINES_MIN = 12  # of each
REPORT_LINES_MAX = 80  # from the beginning of a sanitizer's report, which names the fault
REPORT = re.compile(r"==ERROR: \w+Sanitizer|: runtime error: ")
REASONS = (
    re.compile(r"^skipped: (.+)$", re.M),  # printed by the project's own scripts
    re.compile(r": Skipped\n(.+)$", re.M),  # GoogleTest's GTEST_SKIP() << reason
)


def reason(case):
    output = case.findtext("system-out") or ""
    for pattern in REASONS:
        found = pattern.search(output)
        if found:
            return found.group(1).strip()
    return "it gave no reason"


def shown(output, lines_max):
    lines = output.splitlines()
    tail = max(0, len(lines) - lines_max)
    report = next((i for i, line in enumerate(lines) if REPORT.search(line)), tail)
    end = min(report + REPORT_LINES_MAX, tail)
    return lines[tail:] if report >= end else [*lines[report:end], "...", *lines[tail:]]


def main(presets):
    build = pathlib.Path(__file__).parent.parent / "build"
    passed, failed, skipped, outputs = 0, [], [], []
    for preset in presets:
        if preset.startswith("!"):
            failed.append(f"{preset[1:]}: it did not build, or its tests did not start (see build/{preset[1:]}/*.log)")
            continue
        for case in xml.etree.ElementTree.parse(build / preset / "results.xml").iter("testcase"):
            name = f"{preset}: {case.get('name')}"
            if case.get("status") == "run":
                passed += 1
            elif case.find("skipped") is not None:
                skipped.append((name, reason(case)))
            else:
                failed.append(name)
                outputs.append((name, case.findtext("system-out") or ""))

    by_reason = {}
    for name, why in skipped:
        by_reason.setdefault(why, []).append(name)
    for why, names in by_reason.items():
        print(f"skipped: {why}")
        for name in names:
            print(f"    {name}")
    parts = build / presets[0].lstrip("!") / "parts.txt"
    if parts.exists():
        for line in filter(None, parts.read_text().splitlines()):
            part, verdict, *why = line.split(maxsplit=2)
            if verdict != "yes":
                print(f"not built: {part} {' '.join(why)}")
    for name, output in outputs:
        print(f"{name} failed:")
        for line in shown(output, max(LINES_MIN, LINES_MAX // len(outputs))):
            print(f"    {line}")
    for name in failed:
        print(f"failed: {name}")
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
