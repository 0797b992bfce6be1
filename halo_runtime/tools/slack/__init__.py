"""Slack's Web API as a provider."""
