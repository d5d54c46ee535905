"""Several sites that keep their tables: what they agree on, how they mask their sums, and how these are put together."""
