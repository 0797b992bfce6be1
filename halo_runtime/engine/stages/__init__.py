"""One executor a stage kind; `compiler.py` makes them from the syntax tree."""
