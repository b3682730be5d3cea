//! Code that every process of Sindri shares: layered settings that know the source of each value, logging, the export of
//! traces, and the signals that request a shutdown.
//!
//! A process describes itself and its table of settings in a [`Program`]. Arguments and environment are injected.

mod config;
mod distance;
mod flags;
pub mod logs;
mod program;
mod setting;
mod signals;
mod startup;
mod trace_export;

pub use config::{Config, ConfigError, Source};
pub use distance::levenshtein_distance;
pub use program::{Program, Rule, VERSION};
pub use setting::{CustomType, MASK, Setting, SettingType};
pub use signals::Signals;
pub use startup::Startup;
pub use trace_export::{TraceExport, TraceExportError};
