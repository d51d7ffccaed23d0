"""Runs every line of Python in docs/jax.md unchanged."""

import doctest
import os
import pathlib
import re
import sys

import devices  # sets eight devices before JAX starts; noqa: F401

ROOT = pathlib.Path(os.environ.get("RESHARD_ROOT", pathlib.Path(__file__).parents[3]))


def main():
    page = (ROOT / "docs/jax.md").read_text(encoding="utf-8")
    lines = "\n".join(re.findall(r"^```python\n(.*?)^```", page, re.S | re.M))
    session = doctest.DocTestParser().get_doctest(lines, {}, "docs/jax.md", "docs/jax.md", 0)
    ran = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS | doctest.REPORT_NDIFF).run(session)
    print(f"{ran.attempted} lines, {ran.failed} failed")
    return 1 if ran.failed or ran.attempted < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
