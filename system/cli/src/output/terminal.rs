//! The terminal behind standard output.

use std::io::{self, IsTerminal};

use rustix::termios::tcgetwinsize;

use crate::environment::Environment;

/// Width of a terminal that does not tell it.
const WIDTH_DEFAULT: usize = 80;

/// Properties of standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terminal {
    /// Number of columns; `None` if standard output is no terminal, and lines are not cut.
    pub width: Option<usize>,
    /// True if colours are shown.
    pub has_colors: bool,
}

impl Terminal {
    /// Reads the properties of standard output. `NO_COLOR` and `TERM=dumb` turn off colours.
    pub(crate) fn detect(environment: &Environment) -> Self {
        let output = io::stdout();
        if !output.is_terminal() {
            return Self { width: None, has_colors: false };
        }
        let width = tcgetwinsize(&output).map_or(0, |size| usize::from(size.ws_col));
        let is_plain = environment.is_set("NO_COLOR") || environment.get("TERM").is_some_and(|term| term == "dumb");
        Self { width: Some(if width == 0 { WIDTH_DEFAULT } else { width }), has_colors: !is_plain }
    }
}
