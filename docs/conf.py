"""Configuration of the documentation: `make docs` builds it, warnings being errors."""

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from sphinx.util.nodes import make_refnode

import covshift

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_extensions"))

# Where short names in docstrings are looked for, in this order.
PUBLIC = [
    "covshift",
    "covshift.domains",
    "covshift.measures",
    "covshift.datasets",
    "covshift.selection",
    "covshift.persistence",
    "covshift.tables",
    "covshift.interop.onnx",
    "covshift.interop.skada",
]

project = "covshift"
author = "The covshift developers"
copyright = author
version = release = covshift.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "mathml",
]
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

# Formulas: TeX between dollars in Markdown, drawn by the browser from MathML (design record 0021).
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

# `name` in a docstring is a link; one that leads nowhere is an error.
default_role = "py:obj"
nitpicky = True
autosummary_generate = True
autodoc_typehints = "none"
# Rows of `__all__` are documented where they are imported from, not where they are defined.
autosummary_imported_members = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": [str(HERE.parent / "examples")],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"/\w+\.py",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    # Its page of times would load scripts from the network.
    "write_computation_times": False,
    "plot_gallery": "True",
    "within_subsection_order": "FileNameSortKey",
    "reset_modules": ("matplotlib", "gallery_setting.quiet_and_strict"),
    "reset_modules_order": "both",
}

# The folder of the clone may have a space in its name; names of examples have none (a test).
suppress_warnings = ["sphinx_gallery.space_in_filename"]

html_theme = "pydata_sphinx_theme"
html_title = "covshift"
html_context = {"default_mode": "auto"}
html_static_path = ["_static"]
html_css_files = ["covshift.css"]
html_copy_source = False
html_show_sourcelink = False
html_sidebars = {"start": []}
html_theme_options = {
    "icon_links": [],
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 8,
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
}


def skip_inherited_from_others(app, what, name, obj, skip, options):
    """Leave out methods of scikit-learn's classes: its own reference has them."""
    function = getattr(obj, "fget", None) or getattr(obj, "__func__", None) or obj
    module = getattr(function, "__module__", None) or "covshift"
    return True if not module.startswith("covshift") and callable(function) else None


def _exists(name):
    """Whether this is a module of the package, or something in one."""
    parent, _, last = name.rpartition(".")
    if not parent.startswith("covshift"):
        return False
    try:
        return hasattr(import_module(parent), last) or find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def find_public_name(app, env, node, contnode):
    """Lead `AdaptedClassifier` in any docstring to its page; modules without one stay code."""
    name = node.get("reftarget", "")
    if node.get("refdomain") != "py" or not name:
        return None
    objects = env.domains["py"].objects
    for module in PUBLIC:
        if f"{module}.{name}" in objects:
            place = objects[f"{module}.{name}"]
            return make_refnode(
                app.builder, node["refdoc"], place.docname, place.node_id, contnode, name
            )
    return contnode if _exists(name) else None


def setup(app):
    """Connect the handlers above; Sphinx calls this."""
    app.connect("autodoc-skip-member", skip_inherited_from_others)
    app.connect("missing-reference", find_public_name)
