"""A scripted model for demonstrations, tests and replay."""
