"""The Python interface: PEP 249 over a session. Law: it holds no privacy logic, and sees released rows only."""
