"""kernel plugins new: a working plugin of every kind to begin with."""
