"""inner_hot is busy for half a second of processor time, called by outer_warm."""

import time


def inner_hot(count):
    total = 0
    for number in range(count):
        total += number % 97
    return total


def outer_warm(count):
    total = 0
    for _ in range(count):
        total += inner_hot(2000)
    return total


end = time.process_time() + 0.5
while time.process_time() < end:
    outer_warm(20)
print("done")
