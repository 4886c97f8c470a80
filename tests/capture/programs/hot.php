<?php
// inner_hot is busy for half a second of processor time, called by outer_warm.
function inner_hot(int $count): int {
    $sum = 0;
    for ($i = 1; $i < $count; $i++) {
        $sum += ($sum ^ 0x5DEECE6) % $i;
    }
    return $sum;
}

function outer_warm(int $count): int {
    $sum = 0;
    for ($i = 0; $i < $count; $i++) {
        $sum += inner_hot(2000);
    }
    return $sum;
}

function used(): float {
    $usage = getrusage();
    return $usage['ru_utime.tv_sec'] + $usage['ru_utime.tv_usec'] / 1e6;
}

$end = used() + 0.5;
while (used() < $end) {
    outer_warm(20);
}
echo "done\n";
