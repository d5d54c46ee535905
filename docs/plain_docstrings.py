"""Docstrings as plain Markdown, for the reference page.

The docstrings of the package carry a little reStructuredText: roles such as ``:class:``, formulas in TeX, and
sections that the docstring parser does not know. The pages load no script that would render TeX, so everything
becomes plain text here.
"""

from __future__ import annotations

import inspect
import re

import griffe

from taciturn.methods.docstrings import fill

_SYMBOLS = {
    "Delta": "Δ",
    "Phi": "Φ",
    "Theta": "Θ",
    "alpha": "α",
    "beta": "β",
    "delta": "δ",
    "ell": "ℓ",
    "epsilon": "ε",
    "eta": "η",
    "gamma": "γ",
    "kappa": "κ",
    "lambda": "λ",
    "mu": "μ",
    "nu": "ν",
    "phi": "φ",
    "pi": "π",
    "psi": "ψ",
    "sigma": "σ",
    "tau": "τ",
    "theta": "θ",
    "varepsilon": "ε",
    "varphi": "φ",
    "cdot": "·",
    "ge": "≥",
    "dots": "…",
    "downarrow": "↓",
    "in": "∈",
    "infty": "∞",
    "langle": "⟨",
    "le": "≤",
    "leftarrow": "←",
    "lfloor": "⌊",
    "mapsto": "↦",
    "nabla": "∇",
    "ne": "≠",
    "pm": "±",
    "prod": "∏",
    "propto": "∝",
    "qquad": " ",
    "quad": " ",
    "rangle": "⟩",
    "rfloor": "⌋",
    "rho": "ρ",
    "sim": "~",
    "sqrt": "√",
    "sum": "∑",
    "times": "×",
    "top": "ᵀ",
}
_SUPERSCRIPTS = str.maketrans("0123456789-+", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺")
_GROUP = r"\{((?:[^{}]|\{[^{}]*\})*)\}"
_TILDE = "\N{COMBINING TILDE}"
_HAT = "\N{COMBINING CIRCUMFLEX ACCENT}"

_ITS_OWN = re.compile(r"^(References|Notes|Errata|See Also)\n-+\n((?:.*\n?)*?)(?=^[A-Z][a-z ]+\n-+$|\Z)", re.MULTILINE)
# Several names that are explained elsewhere; the parser would give all of them the type of the first.
_ELSEWHERE = re.compile(r"^(\w+(?:, \w+)+)\n    (As in (?:.*(?:\n    .*)*))\n?", re.MULTILINE)
_EMPTY = re.compile(r"^(?:Parameters|Attributes)\n-+\n+(?=[A-Z][a-z ]+\n-+$|\Z)", re.MULTILINE)
_FIRST_KNOWN = re.compile(r"^(?:Parameters|Attributes|Returns|Raises|Examples)\n-+$", re.MULTILINE)


def plain(formula: str) -> str:
    """A short TeX formula as a line of text. What is not in the table keeps its name, without the backslash."""
    text = (
        formula.replace("&=", "=")
        .replace(r"\arg\min", "argmin")
        .replace(r"\mathcal L", "ℒ")
        .replace(r"\{", "❴")
        .replace(r"\}", "❵")
    )
    text = re.sub(r"\\(?:mathtt|mathrm|mathbf|text|operatorname)\s*" + _GROUP, r"\1", text)
    text = re.sub(r"\\math(?:cal|bb)\s+", "", text)
    text = re.sub(r"\\hat\s*(\w)", rf"\1{_HAT}", text)
    text = re.sub(r"\\tilde\s*\{?(\w)\}?", rf"\1{_TILDE}", text)
    text = re.sub(r"\\[td]?frac" + _GROUP + _GROUP, lambda match: f"{_term(match[1])}/{_term(match[2])}", text)
    text = re.sub(r"\\begin\{cases\}(.*)\\end\{cases\}", r"\1", text, flags=re.DOTALL)
    text = text.replace("&", " if ").replace(r"\\", "; ").replace(r"\|", "‖")
    text = re.sub(r"\\(?:[bB]igg?)?[lr]?(?=[()\[\]|‖])", "", text)
    text = re.sub(r"\\[,;:! ]", " ", text)
    text = re.sub(r"\^\s*\\top", "ᵀ", text)
    text = re.sub(r"\\([A-Za-z]+)[ ]?", lambda match: _symbol(match[1]) + _space_after(match), text)
    text = re.sub(r"\^\{([-+0-9]+)\}|\^([0-9])", lambda match: (match[1] or match[2]).translate(_SUPERSCRIPTS), text)
    inner = None
    while inner != text:  # from the inside out
        inner, text = text, re.sub(r"([_^√])\{([^{}]*)\}", lambda match: match[1] + _term(match[2]), text)
    return " ".join(text.replace("❴", "{").replace("❵", "}").split())


def _term(text: str) -> str:
    """In parentheses, unless it is a single word, number or symbol."""
    return text if re.fullmatch(r"\\?\w+|[-+]", text) else f"({text})"


def _symbol(name: str) -> str:
    return _SYMBOLS.get(name, name)


def _space_after(match: re.Match[str]) -> str:
    """Words and symbols keep the space behind them, the root sign does not."""
    return " " if match[0].endswith(" ") and match[1] != "sqrt" else ""


def to_markdown(docstring: str) -> str:
    """The docstring without roles and directives, its unknown sections put before the known ones."""
    # Names that run over a line leave the rest of a raw docstring indented.
    docstring = inspect.cleandoc(re.sub(r"(?<!\\)\\\n[ ]*", "", docstring))
    text = re.sub(
        r"^([ ]*)\.\. math::[ ]*(.*(?:\n\1[ ]+\S.*)*)",
        lambda match: f"{match[1]}`{plain(match[2]).rstrip(',. ')}`",
        docstring,
        flags=re.MULTILINE,
    )
    text = re.sub(r":math:`([^`]*)`", lambda match: f"`{plain(match[1])}`", text)
    text = re.sub(r":[a-z]+:`~?([^`]*)`", lambda match: f"`{match[1].rpartition('.')[2]}`", text)
    # Two powers in one paragraph would be read as bold text.
    text = re.sub(r"(`[^`]+`)|(?<=\d)\*\*(?=-?\d)", lambda match: match[1] or "^", text)
    # The parser would take the first of several choices for the default.
    text = re.sub(r"^(\w+(?:, \w+)* : )\{([^{}]*)\}", r"\1one of \2", text, flags=re.MULTILINE)
    text = re.sub(r"^(``.*``)\n    (\S.*(?:\n    .*)*)", _item, text, flags=re.MULTILINE)
    shared = "".join(f"{_listed(match[1])}: {' '.join(match[2].split())}\n\n" for match in _ELSEWHERE.finditer(text))
    text = _EMPTY.sub("", _ELSEWHERE.sub("", text))
    moved = shared.replace(": As in", ": as in") + "".join(
        _paragraph(match[1], match[2].strip()) for match in _ITS_OWN.finditer(text)
    )
    if not moved:
        return text
    text = _ITS_OWN.sub("", text)
    first = _FIRST_KNOWN.search(text)
    place = first.start() if first else len(text)
    return f"{text[:place].rstrip()}\n\n{moved}{text[place:]}".rstrip()


def _listed(names: str) -> str:
    """Names as code."""
    return ", ".join(f"`{name}`" for name in names.split(", "))


def _paragraph(title: str, text: str) -> str:
    """A section as a paragraph with a bold title, or as a list below it."""
    gap = "\n\n" if text.startswith("* ") else " "
    return f"**{title.capitalize()}.**{gap}{text}\n\n"


def _item(match: re.Match[str]) -> str:
    """A term and its indented explanation as an item of a list."""
    return f"* {match[1]}: {' '.join(match[2].split())}\n"


class PlainDocstrings(griffe.Extension):
    """Rewrites every docstring as it is read."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: object) -> None:
        """Called for every module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = to_markdown(fill(obj.docstring.value) or "")
