"""Figma's REST API as a provider."""
