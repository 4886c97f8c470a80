"""What of a profile counts: threads and time, stacks, names."""
