"""Reports: plain data collected from the tables of a profile, as JSON and as text for a terminal.

`registry` lists the kinds of report. A report's module has its data first, then its text.
"""
