"""Texts found by meaning: a store of their embeddings in one SQLite file."""
