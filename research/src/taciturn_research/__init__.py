"""Research on taciturn: papers made again, the arena, coverage of intervals, attacks on every class, benchmarks.

A distribution of its own, so that whoever fits models does not install it. It adds the commands ``taciturn arena``,
``taciturn audit`` and ``taciturn reproduce``.
"""
