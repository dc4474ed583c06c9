"""What the schema shows of itself, as rows. Law: from the schema alone, never from the data."""
