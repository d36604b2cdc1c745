"""Settings of the site that `make site` makes of these documents: `docs/_site/index.html`.

Pages are Markdown, read by MyST; the reference is written from the tables of public names and their docstrings.
"""

import sys
from pathlib import Path

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))

from reference_pages import write_reference

import xlalite

project = "xlalite"
release = xlalite.__version__
html_title = "xlalite"
html_theme = "furo"
html_static_path: list[str] = []
exclude_patterns = ["_site"]
suppress_warnings = ["ref.python"]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
# Docstrings quote code in single backquotes, as Markdown does.
default_role = "code"
napoleon_use_ivar = True
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
# The tree of contents stands on every page: thousands of names would fill it.
toc_object_entries = False
html_show_copyright = False
html_show_sourcelink = False
html_copy_source = False


def setup(app: Sphinx) -> None:
    """Has the pages of the reference written before Sphinx looks for documents."""
    app.connect("builder-inited", lambda app: write_reference(Path(app.srcdir) / "reference"))
