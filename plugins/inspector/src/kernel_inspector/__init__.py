"""A local page that shows a session."""
