//! Tests.
mod corpus;
