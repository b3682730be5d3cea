//! What the program that runs a control plane says: one line when it works, or one line why it does not.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use tokio::time::Instant;

use crate::error::{ClusterError, Failure};
use crate::leashed::{Heard, Leashed};
use crate::stop::Stop;

/// Longer than the program itself waits for its parts.
const READY_MAX: Duration = Duration::from_secs(400);
/// What it says is kept for an error, up to so many lines.
const SAID_MAX: usize = 15;

/// Where everything of a control plane is.
#[derive(Clone, Debug, Deserialize)]
pub struct Ready {
    /// `https://127.0.0.1:PORT`.
    pub server: String,
    /// The port.
    pub port: u16,
    /// Everything.
    pub directory: PathBuf,
    /// The logs.
    pub logs: PathBuf,
    /// For programs that read one.
    pub kubeconfig: PathBuf,
    /// Who signed the certificates, as PEM.
    pub authority: PathBuf,
    /// The same as text.
    pub authority_pem: String,
    /// The administrator's token.
    pub token: PathBuf,
    /// The administrator's certificate, as PEM.
    pub client_certificate: PathBuf,
    /// Its key, as PEM.
    pub client_key: PathBuf,
    /// The processes.
    pub pids: BTreeMap<String, u32>,
}

/// One line that means something.
#[derive(Debug)]
pub(crate) enum Said {
    Ready(Box<Ready>),
    Failed(Failure),
    Else,
}

impl Said {
    pub(crate) fn read(line: &str) -> Self {
        let ready = line.strip_prefix("READY ").and_then(|text| serde_json::from_str(text).ok());
        let failed = || line.strip_prefix("FAILED ").and_then(|text| serde_json::from_str(text).ok());
        match ready {
            Some(ready) => Self::Ready(Box::new(ready)),
            None => failed().map_or(Self::Else, Self::Failed),
        }
    }
}

/// Waits until a control plane works.
pub(crate) fn await_ready(program: &mut Leashed, stop: &Stop) -> Result<Ready, ClusterError> {
    let began = Instant::now();
    let mut said = Vec::new();
    loop {
        let left = READY_MAX.saturating_sub(began.elapsed());
        match program.hear(left, stop)? {
            Heard::Line(line) => match Said::read(&line) {
                Said::Ready(ready) => return Ok(*ready),
                Said::Failed(failure) => return Err(ClusterError::Failed(failure)),
                Said::Else if said.len() < SAID_MAX => said.push(line),
                Said::Else => {}
            },
            Heard::Ended(status) => return Err(ended(format!("plane ended by itself: {status}"), said)),
            Heard::Nothing => return Err(ClusterError::late("a control plane", READY_MAX)),
        }
    }
}

/// Sees that a control plane still runs; one that does not says why.
pub(crate) fn check(program: &mut Leashed) -> Result<(), ClusterError> {
    if program.runs() {
        return Ok(());
    }
    let mut said = Vec::new();
    while let Heard::Line(line) = program.hear(Duration::ZERO, &Stop::default())? {
        match Said::read(&line) {
            Said::Failed(failure) => return Err(ClusterError::Failed(failure)),
            Said::Ready(_) | Said::Else => said.push(line),
        }
    }
    Err(ended("the control plane ended".to_owned(), said))
}

fn ended(reason: String, tail: Vec<String>) -> ClusterError {
    let advice = "see whether someone killed it, or the machine ran out of memory".to_owned();
    ClusterError::Failed(Failure { process: Some("plane".to_owned()), reason, tail, advice })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_shown_with_the_last_lines_of_the_right_log_and_what_to_do() {
        let line = r#"FAILED {"process":"etcd","reason":"etcd ended by itself: exit status 1","tail":["no room"],"advice":"make room"}"#;
        let Said::Failed(failure) = Said::read(line) else { panic!("not understood") };
        let words = ClusterError::Failed(failure).to_string();
        assert_eq!(
            words,
            "etcd ended by itself: exit status 1\n  last lines of etcd:\n    no room\n  what to do: make room"
        );
    }

    #[test]
    fn other_lines_mean_nothing() {
        for line in ["", "READY", "READY soon", "FAILED", "panic: so"] {
            assert!(matches!(Said::read(line), Said::Else), "{line}");
        }
    }
}
