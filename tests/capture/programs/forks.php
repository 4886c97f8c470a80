<?php
// A worker is forked when shared_hot is compiled: the two processes then have functions of their own, too.
function shared_hot(int $count): int {
    $sum = 0;
    for ($i = 1; $i < $count; $i++) {
        $sum += ($sum ^ 0x5DEECE6) % $i;
    }
    return $sum;
}

function parent_hot(int $count): int {
    $sum = 0;
    for ($i = 1; $i < $count; $i++) {
        $sum += ($sum & 0xFFFF) % $i + 3;
    }
    return $sum;
}

function child_hot(int $count): int {
    $sum = 0;
    for ($i = 1; $i < $count; $i++) {
        $sum += ($sum | 0x1234) % $i + 5;
    }
    return $sum;
}

for ($i = 0; $i < 1000; $i++) {
    shared_hot(20000);
}
$worker = pcntl_fork();
for ($i = 0; $i < 2000; $i++) {
    shared_hot(20000);
    $worker ? parent_hot(20000) : child_hot(20000);
}
if ($worker) {
    pcntl_waitpid($worker, $status);
    echo "done\n";
}
