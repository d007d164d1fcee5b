"""The control protocol of the Agent SDK."""
