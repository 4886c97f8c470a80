//! Instrumentation maps of programs compiled here, of real programs, and of damaged ones.

mod absolute;
mod compiled;
mod corpus;
mod extracted;
mod linked;
mod tools;
