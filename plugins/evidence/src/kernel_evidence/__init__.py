"""Where an answer comes from: a registry of evidence, and checks of citations."""
