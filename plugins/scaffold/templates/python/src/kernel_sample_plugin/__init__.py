"""sample description."""
