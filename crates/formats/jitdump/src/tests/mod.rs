//! Tests of producers' peculiarities, damaged files, names, unwinding information and the writer.

mod assemble;
mod damage;
mod growing;
mod names;
mod producers;
mod unwinding;
mod writer;
