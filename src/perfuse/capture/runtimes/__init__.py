"""The runtimes that `perfuse record` prepares for naming their functions: one module each, listed in `registry`."""
