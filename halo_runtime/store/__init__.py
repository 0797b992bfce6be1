"""Runs on disk: journals, their locks, their index. `files.FileRunStore` is the entry."""
