"""JITDUMP: the texts of its rules, its records as typed classes, a writer. `public` is `perfuse.jitdump`."""
