"""Texts of PDF, office, HTML and table files as a provider."""
