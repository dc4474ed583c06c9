"""The prompt: statements and backslash commands, typed or piped. Law: it has a connection, and no privacy logic."""
