"""SFrame: the texts of its rules, files and sections. `public` is `perfuse.sframe`."""
