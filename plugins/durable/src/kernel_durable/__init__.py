"""Durable runs: recorded steps, taken up by another process."""
