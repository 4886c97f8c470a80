"""Output files: whole or absent, never over content of other kinds; terminals; temporary files."""
