"""`perfuse record`: runs programs under the recorder that suits them, with the options that give functions names.

`program` finds out what a command runs, `registry` lists the runtimes, `plan` decides and gives reasons, `session`
runs, `collecting` brings the dumps together. What would spoil a recording is in `checks`.
"""
