"""Transcripts in SQLite or PostgreSQL."""
