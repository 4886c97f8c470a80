"""Questions about a profile, one file each. They know the common tables, never a format."""
