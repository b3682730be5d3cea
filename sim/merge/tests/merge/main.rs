//! Server-side apply as a library: its rules, its properties, and input that nobody would write.

mod fuzz;
mod properties;
mod schemas;
mod shapes;
