"""Sphinx configuration: MyST pages in Diataxis folders, warnings are errors."""

from benchpool_scheduler import __version__

project = "benchpool"
author = "the benchpool developers"
copyright = "2026, the benchpool developers"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
myst_enable_extensions = ["colon_fence", "deflist", "attrs_block"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "benchpool"
autodoc_typehints = "description"
copybutton_prompt_text = r"\$ "
