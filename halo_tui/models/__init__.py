"""What the workbench knows, without a screen: nothing here imports textual, so all of it is tested as plain Python."""
