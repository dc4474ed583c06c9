"""What dpsql costs and how good its answers are: each module is a script that prints its table."""
