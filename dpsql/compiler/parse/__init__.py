"""SQL text to one syntax tree, or to a command."""
