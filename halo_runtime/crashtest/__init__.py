"""Crash matrix: a run killed at every boundary in turn, gone on with, and held against one that nobody killed."""
