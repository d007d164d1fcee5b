"""Skills and commands that people and plugins write in Markdown."""
