"""Answers that fit a JSON Schema, and checks of what they mean."""
