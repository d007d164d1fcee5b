"""A tool that counts the words of a text file."""
