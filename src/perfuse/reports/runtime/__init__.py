"""The report of a program on a managed runtime: one file a section, each over the common tables."""
