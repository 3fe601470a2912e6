"""What no real network lets anybody do: going back, moving the clock, making money, starting over.

Each module changes a chain file within the caller's write transaction; `methods` are the doors to it.
"""
