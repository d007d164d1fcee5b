"""Read, Write, Edit, NotebookEdit, Glob and Grep."""
