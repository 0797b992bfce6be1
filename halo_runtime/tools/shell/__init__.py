"""Commands: which are allowed, how values are quoted, and processes that end with the call."""
