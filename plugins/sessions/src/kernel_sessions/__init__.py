"""Conversations as durable JSON lines."""
