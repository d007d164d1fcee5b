"""Count words; keep secrets out of files."""
