"""`halo explain`: what a diagnostic's code means."""

from __future__ import annotations
