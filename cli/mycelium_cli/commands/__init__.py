"""The commands, one module per noun. Each imports what it needs of the SDK when it runs."""
