"""Certificates: what was released, at what cost, under which assumptions.

A certificate is a frozen value. It holds no data and nothing computed from data beyond what was released;
it can be printed, stored as JSON, added up with others and read for a person who holds several records.
"""

from taciturn.certificate.certificate import Certificate
from taciturn.certificate.issue import certify, compose
from taciturn.certificate.pipeline import certificate_of
from taciturn.certificate.release import Release

__all__ = ["Certificate", "Release", "certificate_of", "certify", "compose"]
