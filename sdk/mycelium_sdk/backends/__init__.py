"""Where an owner's records live: the seam, the one scorer over it, and the implementations."""
