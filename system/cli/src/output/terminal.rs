//! The terminals behind standard output and standard error.

use std::io::IsTerminal;
use std::os::fd::AsFd;

use rustix::termios::tcgetwinsize;

use crate::environment::Environment;

/// Width of a terminal that does not tell it.
const WIDTH_DEFAULT: usize = 80;

/// Properties of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terminal {
    /// Number of columns; `None` if the output is no terminal, and lines are not cut.
    pub width: Option<usize>,
    /// True if colours are shown.
    pub has_colors: bool,
}

impl Terminal {
    /// Reads the properties of an output. `NO_COLOR` and `TERM=dumb` turn off colours.
    pub(crate) fn detect(output: &(impl AsFd + IsTerminal), environment: &Environment) -> Self {
        if !output.is_terminal() {
            return Self { width: None, has_colors: false };
        }
        let width = tcgetwinsize(output).map_or(0, |size| usize::from(size.ws_col));
        let is_plain = environment.is_set("NO_COLOR") || environment.get("TERM").is_some_and(|term| term == "dumb");
        Self { width: Some(if width == 0 { WIDTH_DEFAULT } else { width }), has_colors: !is_plain }
    }
}
