"""Many sessions in one process, over HTTP."""
