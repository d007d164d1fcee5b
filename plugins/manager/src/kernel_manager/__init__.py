"""Install, update, lock, verify and remove plugins; a harness as a file."""
