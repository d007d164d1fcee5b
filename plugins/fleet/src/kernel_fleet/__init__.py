"""Many prompts, each in a workspace of its own, over the cores of one machine or a Ray cluster."""
