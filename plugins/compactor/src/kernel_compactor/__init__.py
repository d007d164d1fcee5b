"""Room in the window: old results are cleared, the conversation is summed up."""
