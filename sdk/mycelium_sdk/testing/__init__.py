"""Suites that state what an implementation of a seam must do, usable by whoever writes one."""
