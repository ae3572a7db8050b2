"""Formulas as MathML, which browsers draw themselves: no script, no font, no network."""

from html import escape

from docutils import nodes
from latex2mathml.converter import convert


def _visit_inline(translator, node):
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _visit_display(translator, node):
    # Wide formulas scroll inside their box, also on a phone.
    formula = convert(node.astext(), display="block")
    translator.body.append(
        f'<div class="formula" role="math" aria-label="{escape(node.astext())}">{formula}</div>'
    )
    raise nodes.SkipNode


def setup(app):
    """Name the renderer for ``html_math_renderer``."""
    app.add_html_math_renderer("mathml", (_visit_inline, None), (_visit_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
