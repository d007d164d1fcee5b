"""Output as text, json and stream-json."""
