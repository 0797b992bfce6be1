"""What is on the screen. A widget shows what a model tells it and posts what a person did; it holds no logic."""
