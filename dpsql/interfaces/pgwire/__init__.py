"""The wire: PostgreSQL's protocol 3 over a session. Law: it holds no privacy logic, and sees released rows only."""
