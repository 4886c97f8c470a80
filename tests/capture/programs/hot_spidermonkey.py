"""A function of JavaScript, inner_hot, is busy for 2 s of processor time, called by outer_warm, in SpiderMonkey."""

import time
from pathlib import Path

import pythonmonkey

outer_warm = pythonmonkey.eval(
    Path(__file__).with_name("hot_functions.js").read_text(encoding="utf-8"), {"filename": "hot_functions.js"}
)
end = time.process_time() + 2
while time.process_time() < end:
    outer_warm(200)
print("done")
