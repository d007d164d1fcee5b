"""``kernel demo``: a small real job in the folder you stand in."""
