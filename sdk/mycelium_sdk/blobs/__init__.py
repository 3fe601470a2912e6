"""Where published blobs live: the seam, its naming rules and the file store."""
