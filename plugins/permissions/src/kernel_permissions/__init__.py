"""Permission rules, modes and trust."""
