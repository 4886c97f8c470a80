//! Instrumentation maps of programs compiled here, of real programs, and of damaged ones.

mod compiled;
mod corpus;
mod extracted;
