//! Programs that answer an exec or an attach.

/// Program that answers an exec or an attach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// Output and exit code from a rule.
    Fixed { stdout: String, stderr: String, exit_code: u8 },
    /// A command, with the variables of its container.
    Command { arguments: Vec<String>, variables: Vec<(String, String)> },
    /// The process that the container runs: its log so far, and its input comes back as output.
    Attached { log: String },
}

/// Streams that a client asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StandardStreams {
    pub(crate) stdin: bool,
    pub(crate) stdout: bool,
    pub(crate) stderr: bool,
    pub(crate) tty: bool,
}
