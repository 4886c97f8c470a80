"""What perfuse tells people: reports gathered by SQL, and how a terminal shows them.

A report is gathered as plain data (`profile`, `recording`), so that `--json` and the terminal tell the same; the
`*_text` modules turn it into lines.
"""
