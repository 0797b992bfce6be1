"""The files of one folder as a provider, with nothing that leads out of it."""
