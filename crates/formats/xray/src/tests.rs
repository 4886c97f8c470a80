//! Tests with hand-made, real and damaged logs: their findings and their repairs.

mod assemble;
mod corpus;
mod damage;
mod grammar;
mod habits;
mod hostile;
mod payloads;
mod twice;
