"""Private searches of settings."""
