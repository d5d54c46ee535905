"""HTML and SVG elements; all text in them is escaped."""

from __future__ import annotations

import html

from taciturn.core.visible import visible

__all__ = ["Markup", "element"]

_VOID = frozenset({"img", "input", "meta"})


class Markup(str):
    """Text that is markup already. Only this room makes it, mostly by :func:`element`."""

    __slots__ = ()


def element(name: str, /, *children: str, **attributes: str | float | None) -> Markup:
    """Make one element.

    Parameters
    ----------
    name : str
        Name of the element.
    *children : str or Markup
        Content of the element: plain text is escaped, markup is not.
    **attributes : str, number or None
        ``class_`` stands for class and ``aria_label`` for aria-label; None leaves the attribute out.

    Examples
    --------
    >>> element("p", "1 < 2", element("b", "yes"), class_="sum")
    '<p class="sum">1 &lt; 2<b>yes</b></p>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_escaped(_plain(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    inside = "".join(child if isinstance(child, Markup) else _escaped(child) for child in children)
    return Markup(f"<{name}{written}>{inside}</{name}>")


def _plain(value: str | float) -> str:
    """Format coordinates to a hundredth, which keeps the page short."""
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")


def _escaped(text: str) -> str:
    # HTML and UTF-8 exclude some characters, and some characters change the direction of others.
    return html.escape(visible(text))
