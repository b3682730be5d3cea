//! Output of the `plane` program, which supervises a control plane: one line when it is ready, or one line with a failure.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use tokio::time::Instant;

use crate::error::{ClusterError, Failure};
use crate::owned_process::{OwnedProcess, ProcessEvent};
use crate::stop::Stop;

/// Longer than the program's own timeouts for its parts.
const READY_MAX: Duration = Duration::from_secs(400);
/// Lines of other output that are kept for an error.
const OUTPUT_LINES_MAX: usize = 15;

/// Addresses and files of a control plane that is ready.
#[derive(Clone, Debug, Deserialize)]
pub struct Ready {
    /// `https://127.0.0.1:PORT`.
    pub server: String,
    /// Port.
    pub port: u16,
    /// Directory of all its files.
    pub directory: PathBuf,
    /// Directory of the logs.
    pub logs: PathBuf,
    /// Kubeconfig file.
    pub kubeconfig: PathBuf,
    /// File with the certificate authority, as PEM.
    pub authority: PathBuf,
    /// Content of that file.
    pub authority_pem: String,
    /// File with the administrator's token.
    pub token: PathBuf,
    /// File with the administrator's certificate, as PEM.
    pub client_certificate: PathBuf,
    /// File with the key of that certificate, as PEM.
    pub client_key: PathBuf,
    /// Ids of the processes, by name.
    pub pids: BTreeMap<String, u32>,
}

/// One line of output.
#[derive(Debug)]
pub(crate) enum StatusLine {
    Ready(Box<Ready>),
    Failed(Failure),
    Other,
}

impl StatusLine {
    pub(crate) fn parse(line: &str) -> Self {
        let ready = line.strip_prefix("READY ").and_then(|text| serde_json::from_str(text).ok());
        let failed = || line.strip_prefix("FAILED ").and_then(|text| serde_json::from_str(text).ok());
        match ready {
            Some(ready) => Self::Ready(Box::new(ready)),
            None => failed().map_or(Self::Other, Self::Failed),
        }
    }
}

/// Waits until a control plane is ready.
pub(crate) fn wait_until_ready(program: &mut OwnedProcess, stop: &Stop) -> Result<Ready, ClusterError> {
    let began = Instant::now();
    let mut output = Vec::new();
    loop {
        let left = READY_MAX.saturating_sub(began.elapsed());
        match program.next_event(left, stop)? {
            ProcessEvent::Line(line) => match StatusLine::parse(&line) {
                StatusLine::Ready(ready) => return Ok(*ready),
                StatusLine::Failed(failure) => return Err(ClusterError::Failed(failure)),
                StatusLine::Other if output.len() < OUTPUT_LINES_MAX => output.push(line),
                StatusLine::Other => {}
            },
            ProcessEvent::Ended(status) => return Err(ended(format!("plane ended unexpectedly: {status}"), output)),
            ProcessEvent::Timeout => return Err(ClusterError::timed_out("a control plane", READY_MAX)),
        }
    }
}

/// Checks that a control plane still runs. The error has the failure that it printed.
pub(crate) fn check(program: &mut OwnedProcess) -> Result<(), ClusterError> {
    if program.is_running() {
        return Ok(());
    }
    let mut output = Vec::new();
    while let ProcessEvent::Line(line) = program.next_event(Duration::ZERO, &Stop::default())? {
        match StatusLine::parse(&line) {
            StatusLine::Failed(failure) => return Err(ClusterError::Failed(failure)),
            StatusLine::Ready(_) | StatusLine::Other => output.push(line),
        }
    }
    Err(ended("the control plane ended".to_owned(), output))
}

fn ended(reason: String, tail: Vec<String>) -> ClusterError {
    let advice = "check whether it was killed, or the machine ran out of memory".to_owned();
    ClusterError::Failed(Failure { process: Some("plane".to_owned()), reason, tail, advice })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_displayed_with_the_last_lines_of_the_log_and_advice() {
        let line = r#"FAILED {"process":"etcd","reason":"etcd ended unexpectedly: exit status 1","tail":["no room"],"advice":"make room"}"#;
        let StatusLine::Failed(failure) = StatusLine::parse(line) else { panic!("not parsed") };
        let message = ClusterError::Failed(failure).to_string();
        assert_eq!(
            message,
            "etcd ended unexpectedly: exit status 1\n  last lines of etcd:\n    no room\n  what to do: make room"
        );
    }

    #[test]
    fn other_lines_are_neither_ready_nor_failed() {
        for line in ["", "READY", "READY soon", "FAILED", "panic: so"] {
            assert!(matches!(StatusLine::parse(line), StatusLine::Other), "{line}");
        }
    }
}
