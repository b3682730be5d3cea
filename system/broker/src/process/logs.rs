//! Log lines, to standard error.

use std::io;

use tracing_subscriber::filter::LevelFilter;

use super::config::Config;
use super::settings::{LOG_FORM, LOG_LEVEL};

/// Begins to write log lines as the settings say.
pub fn begin(config: &Config) {
    let level = match config.text(&LOG_FORM) {
        "off" => LevelFilter::OFF,
        _ => config.text(&LOG_LEVEL).parse().expect("the setting takes no other words"),
    };
    tracing_subscriber::fmt().with_writer(io::stderr).with_max_level(level).with_target(false).init();
}
