"""Several sites that keep their tables: what they agree on, and how they mask their sums, which then are added."""
