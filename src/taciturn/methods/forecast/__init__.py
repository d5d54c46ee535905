"""What a fit may be expected to give, before it is paid for: from public facts alone."""
