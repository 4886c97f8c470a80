//! Instrumentation maps of programs compiled here, of real programs, and of damaged ones.

mod absolute;
mod compiled;
mod corpus;
mod crafted;
mod damage;
mod extracted;
mod linked;
mod naming;
mod tools;
