//! Hand-made logs, real ones, damaged ones; what is told of each, and what is left of it when it is repaired.

mod assemble;
mod corpus;
mod damage;
mod grammar;
mod habits;
mod hostile;
mod payloads;
