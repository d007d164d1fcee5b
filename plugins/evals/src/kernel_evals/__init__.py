"""Task suites that are run through the harness, on Inspect."""
