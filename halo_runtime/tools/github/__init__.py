"""GitHub's REST API as a provider."""
