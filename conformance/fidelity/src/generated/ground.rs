//! What is there before any sequence begins: the definitions whose instances sequences use, on both servers.

use sindri_record::play::{Impossible, PlayError, play};
use sindri_record::script::{Script, ScriptError};
use sindri_record::server::Connected;
use sindri_record::target::{Target, TargetError};
use thiserror::Error;

use crate::simulated::{AUTHORITY, Simulated, TOKEN};

/// The name of its namespace.
const NAME: &str = "ground";

/// The ground cannot be laid.
#[derive(Debug, Error)]
pub enum GroundError {
    /// Its script makes no sense.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// A server refused it.
    #[error(transparent)]
    Play(#[from] PlayError),
    /// There is no server to lay it on.
    #[error(transparent)]
    Target(#[from] TargetError),
}

/// What is made first.
///
/// # Errors
/// When its script makes no sense.
pub fn script() -> Result<Script, GroundError> {
    Ok(Script::parse(NAME, include_str!("ground.yaml"))?)
}

/// A simulated server with everything on it, of which each sequence gets a copy.
///
/// # Errors
/// When it refuses a definition.
pub async fn simulated() -> Result<Simulated, GroundError> {
    let mut server = Simulated::new(false);
    let target = simulated_target()?;
    play(&script()?, &target, &mut server, Impossible::Fails).await?;
    Ok(server)
}

/// How the simulated server is asked.
///
/// # Errors
/// Never, as its address is one.
pub fn simulated_target() -> Result<Target, TargetError> {
    Target::new(&format!("http://{AUTHORITY}"), None, Some(TOKEN))
}

/// Puts everything on a real server.
///
/// # Errors
/// When it refuses a definition.
pub async fn real(target: &Target) -> Result<(), GroundError> {
    play(&script()?, target, Connected::new(target), Impossible::Fails).await?;
    Ok(())
}
