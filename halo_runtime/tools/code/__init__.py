"""Python in a sandbox: a small interpreter of it in processes of its own, or CPython inside bubblewrap."""
