"""Confines commands with bubblewrap."""
