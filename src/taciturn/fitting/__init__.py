"""Executors: a plan and a source of records become releases. Solvers are here too; none of them sees epsilon."""
