"""The editor: a TextArea that colours Halo line by line and marks problems.

`area.py` and `buffer.py` are the only modules that know Textual's private rendering and document hooks.
"""
