"""The templates' own tests run in the plugins that are made of them, not here."""

collect_ignore = ["templates"]
