"""Trouble on demand: what servers and networks do wrong, shown to the clients of a chain that does it not."""
