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

impl Session {
    /// Describes the broker and its context, for questions.
    pub(crate) fn describe_place(&self) -> String {
        match &self.context {
            Some(context) => format!("context {context}, broker {}", self.broker),
            None => format!("broker {}", self.broker),
        }
    }
}
