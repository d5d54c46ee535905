"""Privacy: events, mechanisms, accountants, certificates and accounts."""
