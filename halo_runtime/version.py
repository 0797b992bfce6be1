"""The version of Halo; the same as in pyproject.toml, kept here because reading package metadata is slow."""

__version__ = "0.1.0"
