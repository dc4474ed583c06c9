"""Released rows for people: text on terminals, HTML, charts. Law: what is shown is the answer and nothing else."""
