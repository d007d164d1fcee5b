"""Read, Write, Edit, Glob and Grep."""
