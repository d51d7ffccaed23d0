"""The site, made of the pages of this repository: ./dev docs. The root of the repository is Sphinx's source folder, so
the links of the pages work in the repository and on the site."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]

project = "reshard"
author = "the authors of reshard"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
root_doc = "docs/index"
include_patterns = ["docs/*.md", "docs/reference/*.md", "README.md", "CHANGELOG.md", "backends/README.md", "bench/README.md",
                    "proofs/README.md", ".github/CONTRIBUTING.md", ".github/SECURITY.md"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
nitpicky = False
html_theme = "furo"
html_title = "reshard"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_extra_path = ["root", str(ROOT / "build" / "docs" / "extra")]  # the latter holds what Doxygen made
html_copy_source = False
html_show_sphinx = False
copybutton_prompt_text = r"\$ |>>> "
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
pygments_style = "a11y-high-contrast-light"  # of a package that the theme needs
pygments_dark_style = "a11y-high-contrast-dark"
