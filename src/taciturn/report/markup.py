"""HTML and SVG elements whose every text is escaped."""

from __future__ import annotations

import html

from taciturn.core.visible import visible

__all__ = ["Markup", "element"]

_VOID = frozenset({"img", "meta"})


class Markup(str):
    """Text that is markup already. Only :func:`element` and this room make it."""

    __slots__ = ()


def element(name: str, /, *children: str, **attributes: str | float | None) -> Markup:
    """One element.

    Parameters
    ----------
    name : str
        Name of the element.
    *children : str or Markup
        What stands inside: plain text is escaped, markup is not.
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
    """Coordinates to a hundredth: more would only make the page longer."""
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")


def _escaped(text: str) -> str:
    # Neither HTML nor UTF-8 can carry all characters, and some would make others stand where they do not.
    return html.escape(visible(text))
