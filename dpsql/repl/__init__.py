"""The prompt: statements and backslash commands, typed or piped. Law: it holds no privacy logic, and sees a connection."""
