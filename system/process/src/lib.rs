//! What every process of Sindri shares: settings in layers, each value with where it came from, log lines, and the
//! signals that ask for the end.
//!
//! A process says what it is in a [`Program`], its settings in a table, once. Arguments and environment are handed in.

mod begin;
mod config;
mod flags;
pub mod logs;
mod program;
mod setting;
mod signals;

pub use begin::{Begun, begin};
pub use config::{Config, ConfigError, Source};
pub use program::{Program, Rule};
pub use setting::{Form, Kind, MASK, Setting};
pub use signals::Signals;
