"""The functions that the example compiles. perf shows them by name, with samples on their lines."""
# ruff: noqa: SIM108, PLR1730 - written in the subset of Python that the example compiles


def collatz(limit):
    longest = 0
    start = 1
    while start < limit:
        value = start
        steps = 0
        while value != 1:
            if value % 2 == 0:
                value = value // 2
            else:
                value = value * 3 + 1
            steps = steps + 1
        if steps > longest:
            longest = steps
        start = start + 1
    return longest


def primes(limit):
    count = 0
    number = 2
    while number < limit:
        divisor = 2
        prime = 1
        while divisor * divisor <= number:
            if number % divisor == 0:
                prime = 0
            divisor = divisor + 1
        count = count + prime
        number = number + 1
    return count
