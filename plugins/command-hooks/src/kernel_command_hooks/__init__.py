"""Hooks of settings and plugins as commands."""
