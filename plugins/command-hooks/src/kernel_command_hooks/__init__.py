"""Hooks of settings and plugins: commands, http, and what other plugins can run."""
