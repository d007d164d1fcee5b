"""The Agent tool: agents with a context, tools and rules of their own."""
