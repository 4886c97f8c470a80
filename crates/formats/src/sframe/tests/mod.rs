//! Real sections of every version and ABI, damaged ones, and laws.

mod corpus;
mod dumps;
mod round_trips;
