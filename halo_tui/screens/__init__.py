"""The workbench and the forms that open over it."""
