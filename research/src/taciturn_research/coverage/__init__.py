"""How often the intervals of the default model cover what they are for, by simulation."""
