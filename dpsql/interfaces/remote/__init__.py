"""The client of a dpsql server: a session whose statements run elsewhere. Law: it sees released rows only, and keeps
nothing to itself that decides on privacy: the server does."""
