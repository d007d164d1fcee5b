"""Bash in the foreground and in the background."""
