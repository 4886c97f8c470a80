//! Tests. What is assembled here is assembled without the layouts and encoders under test.

mod assemble;
mod breaches;
mod damage;
mod early;
mod layouts;
mod round_trips;
mod shots;
mod tables;
