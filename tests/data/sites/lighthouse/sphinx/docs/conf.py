# The site of Sphinx: the tests set the theme and the builder. -D html_theme=furo
import os
import sys

sys.path.insert(0, os.path.abspath("../../src"))
project = "Lighthouse"
html_baseurl = "https://lighthouse.example/handbook/"
html_theme = "alabaster"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
]
myst_enable_extensions = ["attrs_block", "colon_fence", "deflist", "dollarmath", "tasklist"]
myst_heading_anchors = 3
pygments_style = "default"
