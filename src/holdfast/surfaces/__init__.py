"""Ways in for people and programs: each is thin, and none knows another."""
