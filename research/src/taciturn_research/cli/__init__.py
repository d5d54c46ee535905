"""Commands that the entry points of this distribution add to ``taciturn``.

Heavy packages are imported when one of them runs.
"""
