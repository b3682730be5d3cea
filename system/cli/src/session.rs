//! The client of the broker and standard output, with which commands work.

use sindri_client::Client;

use crate::output::Output;

/// Client of the broker, and standard output.
#[derive(Debug)]
pub(crate) struct Session {
    pub client: Client,
    /// URL of the broker.
    pub broker: String,
    /// Name of the context, if its broker is used.
    pub context: Option<String>,
    pub output: Output,
}
