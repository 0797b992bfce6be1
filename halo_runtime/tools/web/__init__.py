"""Requests to addresses that programs name: one client, which addresses it may reach, bodies and headers."""
