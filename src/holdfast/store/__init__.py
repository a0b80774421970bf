"""Nothing is lost: originals behind refs, sessions and what was done to them."""
