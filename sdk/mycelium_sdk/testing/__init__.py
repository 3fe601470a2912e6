"""Suites that state what an implementation of a seam must do, and a transport that fails on demand."""
