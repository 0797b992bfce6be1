"""Calls: what stands behind `|>`, `=>`, in arms and items. One module a kind of callee."""
