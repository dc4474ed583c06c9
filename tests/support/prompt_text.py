"""Text as it may stand in a prompt: any, and such that is full of quotes and comments that begin and do not end."""

from hypothesis import strategies as st

_PARTS = ["'", '"', "$$", "$a$", "/*", "*/", "--", "\n", ";", "\\", "E'", " ", "a", "1", ".", "é", "\x00", "?", "$1"]
typed = st.one_of(st.text(), st.lists(st.sampled_from(_PARTS)).map("".join))
