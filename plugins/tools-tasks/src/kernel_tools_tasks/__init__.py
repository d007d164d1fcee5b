"""Task lists that survive a resume."""
