"""What only the owner may do and see. Law: the command line is the only interface that imports this package."""
