//! Real sections of every version and ABI, damaged ones, and laws.

mod corpus;
mod damage;
mod dumps;
mod hand_made;
mod meaning;
mod round_trips;
mod rules;
mod tables;
