"""Where data meet public bounds: fixed-point designs, targets, and every sensitivity."""
