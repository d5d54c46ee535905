"""Answers about verified files for those who did not make them: a registry record, and the questions of NIST."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context
from typing import TYPE_CHECKING, Any

from taciturn._version import __version__
from taciturn.app.report.account import explain_account
from taciturn.app.verify import check_heads
from taciturn.core.errors import AccountError, CertificateError, visible
from taciturn.engines.sites.plan import COORDINATED
from taciturn.privacy.account import state_of
from taciturn.privacy.certificate import Certificate, compose, list_facts, relation_in_words
from taciturn.privacy.ledger import LedgerEntry, check_entries

if TYPE_CHECKING:
    from taciturn.app.model_file import Model
    from taciturn.app.verify import Verification
    from taciturn.tables.columns import Column

OWNER = "OWNER:"
"""How an answer begins that only the owner of the data can give."""

_DIGITS = 6
# Of a table of thousands of columns; the model file has all of them.
_MOST_COLUMNS = 50

_BOUNDS = {
    "gdp": "Gaussian differential privacy: squares of Gaussian parameters add up",
    "rdp": "Rényi differential privacy: divergences add up at every order",
    "pure": "the optimal composition of pure differential privacy",
    "sum": "basic composition: epsilons and deltas add up",
}
_CENTRAL = (
    "Central: whoever runs the fit holds the records in the clear and is trusted with them. Noise is added before "
    "anything is written, and what the fit writes holds released values and public facts alone."
)
_OF_SITES = (
    "Central, over several sites: each site holds its own records in the clear and no others. Whoever runs the fit is "
    "trusted with exact sums over all sites, and does not see those of one of them. Noise is added before anything is "
    "written, and what the fit writes holds released values and public facts alone."
)
_ARITHMETIC = {
    "exact": "sums are integers and released values lie on a lattice, so that the proof covers what the computer does",
    "float64": "some releases are ordinary doubles, whose rounding is outside the proof unless an assumption covers it",
}


@dataclass(frozen=True)
class Answers:
    """What verified files and the ledger of an account state about a release, for people who did not make it.

    Everything is about all files together. Epsilon is that of the certificate, or for a score beside a model that of
    both, accounted for again; verification has recomputed each from its releases. Whatever no file states is the
    owner's to say, and such an answer begins with ``OWNER:``.
    """

    total: Certificate
    certificates: Mapping[str, Certificate]
    model: Model | None
    entries: Sequence[LedgerEntry]
    signed_by: str | None
    checked: Sequence[str]

    @classmethod
    def of(cls, found: Verification, ledger: Iterable[LedgerEntry] | None = None) -> Answers:
        """The answers for files that hold; ``ledger`` are the entries of the account that paid."""
        unproved = [name for name, certificate in found.certificates.items() if not certificate.is_proved]
        if unproved:
            raise CertificateError(
                f"{unproved[0]}: expected a proved guarantee, got status {found.certificates[unproved[0]].status!r}, "
                "about which there is nothing to state; fit with a finite epsilon, or take the file out."
            )
        total = compose(*found.certificates.values())
        return cls(
            # As it is printed, so that every place has the same number, and none a smaller one.
            replace(total, epsilon=_up(total.epsilon), delta=_up(total.delta)),
            found.certificates,
            found.model,
            [] if ledger is None else check_entries(ledger),
            found.signed_by,
            [_one_line(f"{item.name}: {item.outcome}, {item.words}") for item in found.items],
        )

    # ------------------------------------------------------------------ the record of a registry

    def registry_record(self) -> str:
        """The record as YAML, in the form of the OpenDP deployments registry, of status "Draft"."""
        return "".join(f"{line}\n" for line in _yaml(self._record()))

    def _record(self) -> dict[str, Any]:
        facts = self._facts()
        return {
            "url_slug": f"{OWNER} a short name in lowercase letters, with hyphens",
            "status": "Draft",
            "tier": 3,
            "deployment": {
                "basic": {
                    "name": f"{OWNER} the name of the data product",
                    "data_curators": [f"{OWNER} who publishes it"],
                    "intended_use": f"{OWNER} what it is for",
                    "data_product_type": (
                        f"{OWNER} Summary statistics, or Machine learning model"
                        if self.model is None
                        else "Machine learning model"
                    ),
                    "data_product_region": f"{OWNER} whose data these are, and whose law applies",
                    "description": self._description(),
                    "publication_date": f"{OWNER} YYYY-MM-DD",
                    "data_product_sector": f"{OWNER} such as Healthcare, Finance, Government or Education",
                },
                "dp_variant": {
                    "variant_name": "Approximate DP" if self.total.delta else "Pure DP",
                    "data_domain": self._domain(),
                    "unprotected_quantities": _points(self.total.unprotected),
                },
                "privacy_loss": {
                    "privacy_unit": self._unit(),
                    "privacy_unit_details": _sentence(relation_in_words(self.total)),
                    "privacy_parameters": self._parameters(),
                    "privacy_parameters_details": _points([*facts["guarantee"], *self._more_parameters()]),
                },
                "deployment_model": {
                    "model_name": "Central",
                    "model_name_details": _points(self._trusted()),
                    "actors": f"{OWNER} who held the records, who ran the fit, who sees the result, and who is trusted",
                    "release_type": f"{OWNER} One release, or Many releases",
                    "release_type_details": _points(
                        [self._spending(), f"{OWNER} what else is planned with these data"]
                    ),
                    "data_source_type": f"{OWNER} Static, or Dynamic if records are added over time",
                    "access_type": "Non-interactive",
                    "access_type_details": "Files are published. They answer no queries about the records.",
                },
                "accounting": {
                    "post_processing": _points(
                        [
                            "Predictions, reports and tables follow from the released values and cost nothing.",
                            f"{OWNER} what was done with the result afterwards",
                        ]
                    ),
                    "composition": _points(self._composition()),
                },
                "implementation": {
                    "preprocessing_and_hyperparameter_tuning": (
                        f"{OWNER} what was done with the data before the fit, how settings and epsilon were chosen, "
                        "and whether that looked at the data"
                    ),
                    "mechanisms": _points(
                        [
                            f"Implemented by taciturn, a Python library; version {__version__} checked these files.",
                            *(f"Released: {line}" for line in facts["released"]),
                            *self._correctness(),
                            *(f"Outside the proof: {line}" for line in self.total.side_channels),
                            f"{OWNER} how the records themselves are kept, and who has access to them",
                        ]
                    ),
                    "justification": _points(
                        [
                            *(f"Assumed: {line}" for line in facts["assumed"]),
                            f"{OWNER} why these choices, and who approved them",
                        ]
                    ),
                },
                "administrative": {
                    "sources": f"{OWNER} where the files, their public key and a description are published",
                    "notes": _points(["taciturn verify was run on the files:", *self.checked]),
                    "registry_authors": [f"{OWNER} who filled in this record"],
                },
            },
        }

    # ------------------------------------------------------------------ the questions of NIST SP 800-226

    def nist_answers(self) -> str:
        """The answers as Markdown, under the headings unit, parameters, correctness, trust model and side channels."""
        return "\n".join(self._answers()) + "\n"

    def _answers(self) -> Iterator[str]:
        facts = self._facts()
        yield from ("# Answers for a data access body", "", self._description(), "")
        yield (
            f"taciturn {__version__} wrote these answers to the questions of NIST SP 800-226 from the files and "
            f"checked them first. Answers that begin with {OWNER.rstrip(':')} are the owner's to give."
        )
        yield from _section("1. Unit of privacy", [
            ("Who is protected?", [_sentence(self._unit())]),
            ("Which data sets does the guarantee compare?", [_sentence(relation_in_words(self.total))]),
            ("What holds for a larger group?", self._group(facts)),
            ("How many rows can one person have?", self._rows()),
            ("What is not protected?", [_sentence(text) for text in self.total.unprotected]),
        ])  # fmt: skip
        yield from _section("2. Parameters", [
            ("What is guaranteed?", facts["guarantee"]),
            ("What does each file cost by itself?", self._files()),
            ("What can an attacker do?", [*self._attacks(facts)]),
            ("What else was spent on these data?", [self._spending()]),
            ("Why is this budget acceptable?", [f"{OWNER} the reason, and who decided"]),
        ])  # fmt: skip
        yield from _section("3. Correctness", [
            ("What was released, and with which noise?", [_sentence(text) for text in facts["released"]]),
            ("How do the releases add up?", self._composition()),
            ("How far is it proved?", self._correctness()),
            ("What has to be true for it?", [_sentence(text) for text in facts["assumed"]] or ["Nothing more."]),
            ("Which facts were taken as public?", [_sentence(text) for text in facts["public"]]),
            ("How was it checked?", ["taciturn verify accepts the files:", *self.checked]),
        ])  # fmt: skip
        yield from _section("4. Trust model", [
            ("Who sees the records?", [
                *self._trusted(), f"{OWNER} who held them, who ran the fit, and under which rules",
            ]),
            ("Who can undo the noise?", [self._seed()]),
            ("Whose word are these files?", [self._signature()]),
        ])  # fmt: skip
        yield from _section("5. Side channels", [
            ("What may an observer of the computation learn?", [_sentence(text) for text in self.total.side_channels]),
            ("Does rounding reveal anything?", [_sentence(_ARITHMETIC[self.total.arithmetic])]),
            ("What was done about it?", [f"{OWNER} where the fit ran, and who could watch or time it"]),
        ])  # fmt: skip

    # ------------------------------------------------------------------ single facts

    def _facts(self) -> dict[str, list[str]]:
        facts = defaultdict(list)
        for name, text in list_facts(self.total):
            facts[name].append(_one_line(text))
        return facts

    def _description(self) -> str:
        if self.model is None:
            return f"{OWNER} what was released, such as a list of selected columns"
        estimator, target = self.model.estimator, _one_line(self.model.bounds.target.name)
        used, every = int(estimator.support_.sum()), len(self.model.feature_names)
        score = ", with a private score" if "score.json" in self.certificates else ""
        return (
            f"A linear model of “{target}” ({type(estimator).__name__}), with {used:,} of {every:,} features, fitted "
            f"under differential privacy{score}."
        )

    def _domain(self) -> str:
        facts = self.total.public if self.model is None else self.model.certificate.public
        unit = f"{self.total.unit}s"
        number = facts.get("records")
        size = f"{number:,} {unit}" if isinstance(number, int) else f"a number of {unit}"
        if self.total.relation == "add-remove":
            size = f"any number of {unit}"
        if self.model is None:
            return f"Tables of {size}."
        columns, found = list(self.model.bounds.used), set(self.model.bounds.found_privately)
        listed = [
            f"{_one_line(name)}: {f'{column.type}, bounds found privately' if name in found else _values(column)}"
            for name, column in columns[:_MOST_COLUMNS]
        ]
        if len(columns) > _MOST_COLUMNS:
            listed.append(f"and {len(columns) - _MOST_COLUMNS:,} more columns, which model.json lists")
        clipped = "numbers beyond their bounds count as the nearest bound"
        listed = [f"Tables of {size} with a target and these columns ({clipped}):", *(f"- {line}" for line in listed)]
        return "\n".join(listed)

    def _unit(self) -> str:
        size = self.total.group_size
        if self.total.unit == "person":
            return (
                "one person, with all of their rows" if size == 1 else f"up to {size} persons, with all of their rows"
            )
        return "one record (row)" if size == 1 else f"up to {size} records of one person"

    def _rows(self) -> list[str]:
        if self.total.unit == "person":
            return ["Any number. All rows of a person count as one record."]
        size = self.total.group_size
        return [
            "One: the guarantee is for a single row." if size == 1 else f"Up to {size}.",
            f"{OWNER} how that was made sure, since a person with more rows is protected less",
        ]

    def _parameters(self) -> dict[str, float]:
        found = {"epsilon": self.total.epsilon, "delta": self.total.delta}
        mu = self.total.mu
        return found if mu is None else found | {"rho": _up(mu * mu / 2.0)}

    def _more_parameters(self) -> Iterator[str]:
        facts = self._facts()
        yield from self._attacks(facts)
        if self.total.mu is not None:
            yield "rho is half the square of mu. Both hold up to the distance of the samplers, which delta includes."
        yield from self._group(facts)
        yield from self._files()

    def _group(self, facts: Mapping[str, list[str]]) -> list[str]:
        groups = (texts for name, texts in facts.items() if re.fullmatch(r"\d+ (record|person)s", name))
        return [_sentence(text) for texts in groups for text in texts]

    def _attacks(self, facts: Mapping[str, list[str]]) -> Iterator[str]:
        for text in facts["membership test"]:
            yield f"Membership test: {text}."
        for text in facts["its advantage"]:
            yield f"Its true and false positive rates differ by {text}."
        for text in facts["mu (Gaussian)"]:
            yield f"Gaussian parameter: mu = {text}."

    def _files(self) -> list[str]:
        return [
            f"{name}: epsilon = {_up(certificate.epsilon):.{_DIGITS}g}, delta = {_up(certificate.delta):.{_DIGITS}g}"
            for name, certificate in self.certificates.items()
        ]

    def _composition(self) -> list[str]:
        n_kinds = len(self.total.events)
        n_releases = sum(release.count for release in self.total.events)
        said = [
            f"{n_releases:,} releases of {n_kinds:,} kinds are accounted for together, by {_BOUNDS[self.total.bound]}."
            if n_releases
            else "Nothing that depends on the data was released.",
            *self._facts()["halves"],
        ]
        if len(self.certificates) > 1:
            said.append(f"The files count as if they were about the same {self.total.unit}s.")
        return said

    def _correctness(self) -> list[str]:
        return [
            f"Status: {self.total.status}. Epsilon follows from the listed releases and was recomputed from them.",
            f"Arithmetic: {_ARITHMETIC[self.total.arithmetic]}.",
        ]

    def _trusted(self) -> list[str]:
        """Who is trusted with what, in one text unless files were made in different ways."""
        made = (_OF_SITES if COORDINATED in each.assumptions else _CENTRAL for each in self.certificates.values())
        return list(dict.fromkeys(made))

    def _seed(self) -> str:
        if self.total.seeded:
            return "Whoever knows the seed: the noise was seeded, for reproduction only. Do not publish these files."
        return "Nobody, as the certificate states: the noise was not seeded."

    def _signature(self) -> str:
        if self.signed_by is None:
            return (
                f"{OWNER} the files were not checked against a public key (--public-key), so say who vouches for them"
            )
        return f"That of the owner of the public key {self.signed_by}, who signed all of them."

    def _spending(self) -> str:
        if self.entries:
            state = state_of(self.entries[0], list(self.entries))
            verdicts = check_heads(self.certificates, self.entries)
            unpaid = [name for name, verdict in verdicts.items() if isinstance(verdict, AccountError)]
            paid = f"did not pay for {' and '.join(unpaid)}" if unpaid else f"paid for {' and '.join(verdicts)}"
            head = f"Account {_one_line(state.name)} ({state.entries:,} entries, head {state.head}) {paid}."
            return " ".join([head, *explain_account(state)])
        heads = [name for name, certificate in self.certificates.items() if certificate.account_head is not None]
        if heads:
            return (
                f"{' and '.join(heads)}: the certificate names an entry of an account, which was not looked at here "
                f"(--account). {OWNER} what the account allows in total"
            )
        return (
            f"{OWNER} no account kept count, so say what else was released about these data, at which epsilon and delta"
        )


def _up(number: float) -> float:
    """A number rounded up to so many digits as are printed; 0.1 stays 0.1."""
    return float(Context(prec=_DIGITS, rounding=ROUND_CEILING).create_decimal(repr(float(number))))


def _values(column: Column) -> str:
    if column.categories:
        return f"{len(column.categories):,} categories"
    if column.lower is None or column.upper is None:
        return column.type
    return f"{column.type} from {column.lower:g} to {column.upper:g}"


def _sentence(text: str) -> str:
    """A phrase of a certificate as a sentence."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


# --- The two forms: YAML as the registry reads it, and Markdown.


def _points(texts: Sequence[str]) -> str:
    """A list of sentences, or the only one of them."""
    return texts[0] if len(texts) == 1 else "\n".join(f"- {text}" for text in texts)


def _one_line(text: str) -> str:
    """A text that may hold names from a table, so that none of them looks like a line of its own."""
    return " ".join(visible(text).split())


def _section(title: str, questions: Sequence[tuple[str, Sequence[str]]]) -> Iterator[str]:
    yield from ("", f"## {title}")
    for question, answers in questions:
        if answers:
            yield from ("", f"**{question}**", "", _points(answers))


def _yaml(content: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """Lines of YAML: texts of one line in double quotes, longer ones as blocks."""
    for key, value in content.items():
        if isinstance(value, Mapping):
            yield f"{indent}{key}:"
            yield from _yaml(value, f"{indent}  ")
        elif isinstance(value, list):
            yield f"{indent}{key}:"
            yield from (f"{indent}  - {_quoted(each)}" for each in value)
        elif isinstance(value, str) and "\n" in value:
            yield f"{indent}{key}: |-"
            yield from (f"{indent}  {visible(line)}" for line in value.split("\n"))
        else:
            yield f"{indent}{key}: {_quoted(value) if isinstance(value, str) else _number(value)}"


def _quoted(text: str) -> str:
    return json.dumps(visible(text), ensure_ascii=False)


def _number(value: float) -> str:
    """A number that every parser of YAML takes for one: 1e-06 is a text to some of them."""
    if isinstance(value, int):
        return str(value)
    text = repr(value)
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa if '.' in mantissa else f'{mantissa}.0'}{e}{exponent}"
