//! Preparation of both servers before any sequence: the CRDs whose custom resources the sequences use.

use sindri_record::script::{Script, ScriptError};
use sindri_record::script_runner::{OnFailure, ScriptRunError, run_script};
use sindri_record::server::RemoteServer;
use sindri_record::target::{Target, TargetError};
use thiserror::Error;

use crate::simulated::{AUTHORITY, SimulatedServer, TOKEN};

/// Name of the script and its namespace.
const NAME: &str = "setup";

/// Failure of the preparation.
#[derive(Debug, Error)]
pub enum SetupError {
    /// The script is invalid.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// A server rejected a request.
    #[error(transparent)]
    Run(#[from] ScriptRunError),
    /// The address of a server is invalid.
    #[error(transparent)]
    Target(#[from] TargetError),
}

/// Parses the script.
///
/// # Errors
/// If the script is invalid.
fn script() -> Result<Script, SetupError> {
    Ok(Script::parse(NAME, include_str!("setup.yaml"))?)
}

/// Prepares a simulated server, of which each sequence gets a copy.
///
/// # Errors
/// If it rejects a CRD.
pub async fn prepare_simulated() -> Result<SimulatedServer, SetupError> {
    let mut server = SimulatedServer::new(false);
    let target = simulated_target()?;
    run_script(&script()?, &target, &mut server, OnFailure::Abort).await?;
    Ok(server)
}

/// Returns the address of the simulated server.
///
/// # Errors
/// Never: the address is valid.
pub fn simulated_target() -> Result<Target, TargetError> {
    Target::new(&format!("http://{AUTHORITY}"), None, Some(TOKEN))
}

/// Prepares a real server.
///
/// # Errors
/// If it rejects a CRD.
pub async fn prepare_real(target: &Target) -> Result<(), SetupError> {
    run_script(&script()?, target, RemoteServer::new(target), OnFailure::Abort).await?;
    Ok(())
}
