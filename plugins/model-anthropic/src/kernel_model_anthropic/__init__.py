"""The Messages API as a model provider."""
