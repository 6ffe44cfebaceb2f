"""How a language model writes, one token at a time. No user interface in here: see README for the map."""
