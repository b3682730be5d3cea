//! Tests of server-side apply: its rules, its properties, and arbitrary input.

mod fuzz;
mod properties;
mod schemas;
mod shapes;
