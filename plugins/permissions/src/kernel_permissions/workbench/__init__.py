"""``kernel permissions``: see why a call is allowed, asked or denied, try rules out, and find rules that mislead."""
