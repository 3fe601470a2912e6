"""The REST API of the indexer (formats.md section 7)."""
