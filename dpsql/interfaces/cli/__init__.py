"""The command line. Law: it holds no privacy logic, and prints released rows only."""
