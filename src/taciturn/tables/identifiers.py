"""Columns that identify somebody or something, told by their names alone: no value is looked at."""

from __future__ import annotations

import re

__all__ = ["names_a_person", "names_an_identifier"]

_PERSONS = re.compile(
    "account|child|citizen|client|customer|donor|employee|individual|insured|member|mother|participant|patient|person|"
    "proband|pupil|resident|respondent|student|subject|taxpayer|user|voter|worker"
)
_KEYS = re.compile("code|guid|id|ident|identifier|key|no|nr|num|number|pseudonym|uid|uuid")
# Words that are a person's key by themselves, and those of anything.
_PERSON_KEYS = re.compile(
    "(client|customer|member|participant|pat|patient|person|subj|subject|user|usubj)id|mrn|nhsnumber|nino|pid|"
    "pseudonym|ssn|(patienten?|personen?|probanden?)(id|nr|nummer)"
)
_THINGS = re.compile("admission|case|encounter|episode|invoice|order|record|row|sample|specimen|stay|visit")
_OTHER_KEYS = re.compile("guid|iban|id|identifier|recordid|rowid|uid|uuid|fall(id|nr|nummer)")
# What tells who somebody is, and is no key.
_WHO = re.compile("(first|last|full|family|sur)?name|(e?mail|address|phone|telephone|street)")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def names_a_person(name: str) -> bool:
    """Whether a column is named like the key of a person, such as "patient_id" or "PersonNr".

    Examples
    --------
    >>> from taciturn.tables.identifiers import names_a_person
    >>> [names_a_person(name) for name in ("patient_id", "SubjectID", "id", "age", "number of patients")]
    [True, True, False, False, False]
    """
    words = _words(name)
    if _PERSON_KEYS.fullmatch("".join(words)):
        return True
    return len(words) > 1 and all(
        kind.fullmatch(word) for kind, word in zip((_PERSONS, _KEYS), words[-2:], strict=True)
    )


def names_an_identifier(name: str) -> bool:
    """Whether a column is named like a key of anything, or like what tells who somebody is: neither is a feature.

    Examples
    --------
    >>> from taciturn.tables.identifiers import names_an_identifier
    >>> [names_an_identifier(name) for name in ("patient_id", "id", "visit no", "last name", "age", "idea", "zip code")]
    [True, True, True, True, False, False, False]
    """
    words = _words(name)
    candidates = ("".join(words), *words[-1:])
    if names_a_person(name) or any(_OTHER_KEYS.fullmatch(candidate) for candidate in candidates):
        return True
    of_a_thing = len(words) > 1 and _THINGS.fullmatch(words[-2]) and _KEYS.fullmatch(words[-1])
    return bool(of_a_thing or _WHO.fullmatch("".join(words)))


def _words(name: str) -> list[str]:
    """The words of a name in lower case: apart by signs, or by capitals."""
    return [word.lower() for word in _WORD.findall(name)]
