"""Mono's log profiler: the texts of its rules, logs converted and written. `public` is `perfuse.mono`."""
