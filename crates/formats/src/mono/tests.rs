//! Tests.

mod corpus;
mod layouts;
