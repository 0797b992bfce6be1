"""Cassettes: files that keep what a run's models and tools answered, and answer in their place (spec 2.9)."""
