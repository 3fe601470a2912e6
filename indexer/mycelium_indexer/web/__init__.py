"""The explorer page: owners, an owner's timeline, and a place to check a file, for people with a browser."""

from mycelium_indexer.web.pages import routes

__all__ = ["routes"]
