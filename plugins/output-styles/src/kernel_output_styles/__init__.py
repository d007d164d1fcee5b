"""Output styles: how the model answers, chosen by name."""
