//! Stand-ins for what runs in a container: the process of an exec or an attach, and a server behind a port.
//!
//! They are machines without I/O: input goes in, output comes out. No program runs, and there are no files: a few commands
//! of a shell have the output that tests rely on, and every other command succeeds without output.

mod commands;
pub(crate) mod port_server;
pub(crate) mod program;
pub(crate) mod run;
mod shell;
mod terminal;
