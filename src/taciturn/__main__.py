"""``python -m taciturn``."""

from taciturn.cli import main

main()
