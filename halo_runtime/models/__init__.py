"""Models: one request and reply shape (base.py), one module a service, found through registry.py."""
