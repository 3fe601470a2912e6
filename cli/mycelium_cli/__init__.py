"""The `mycelium` command line."""
