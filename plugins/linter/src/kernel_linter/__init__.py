"""Checks plugins, marketplaces, skills, agents, hooks, servers and settings without running them."""
