"""Questions to the person, plan mode and the search for tools."""
