"""`Browser` and `Chrome`: a page of a real browser, whose every connection is looked at on its way out."""
