//! Tests with real sections of every version and ABI, with damaged ones, and with properties.

mod corpus;
mod damage;
mod dumps;
mod hand_made;
mod meaning;
mod round_trips;
mod rules;
mod tables;
