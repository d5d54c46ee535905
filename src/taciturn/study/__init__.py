"""What strangers can check: certificates against the ledgers that paid for them."""
