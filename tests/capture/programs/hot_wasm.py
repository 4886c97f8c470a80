"""A function of WebAssembly, inner_hot, is busy for 1.5 s of processor time, called by outer_warm."""

import time

import wasmtime

TEXT = """
(module
  (func $inner_hot (export "inner_hot") (param $count i32) (result i32)
    (local $sum i32)
    (loop $again
      (local.set $sum (i32.add (i32.rem_u (local.get $sum) (i32.const 7919)) (local.get $count)))
      (local.set $count (i32.sub (local.get $count) (i32.const 1)))
      (br_if $again (local.get $count)))
    (local.get $sum))
  (func $outer_warm (export "outer_warm") (param $count i32) (result i32)
    (local $sum i32)
    (loop $again
      (local.set $sum (i32.add (local.get $sum) (call $inner_hot (i32.const 20000))))
      (local.set $count (i32.sub (local.get $count) (i32.const 1)))
      (br_if $again (local.get $count)))
    (local.get $sum)))
"""

config = wasmtime.Config()
config.profiler = "jitdump"
store = wasmtime.Store(wasmtime.Engine(config))
instance = wasmtime.Instance(store, wasmtime.Module(store.engine, TEXT), [])
outer_warm = instance.exports(store)["outer_warm"]
end = time.process_time() + 1.5
while time.process_time() < end:
    outer_warm(store, 20)
print("done")
