//! The binaries and the runtime of every command.

use std::path::Path;
use std::rc::Rc;

use sindri_cluster::program::ExitReason;
use sindri_conformance::binaries::Binaries;
use sindri_conformance::runtime::InterruptibleRuntime;

/// Finds the binaries next to this one.
pub fn find_binaries() -> Result<Binaries, ExitReason> {
    let own = std::env::current_exe().map_err(|error| ExitReason::Failed(error.to_string()))?;
    let directory = own.parent().unwrap_or(Path::new("."));
    Binaries::find(directory).map_err(|missing| ExitReason::Usage(missing.to_string()))
}

/// Creates the runtime of the current thread.
pub fn create_runtime() -> Result<Rc<InterruptibleRuntime>, ExitReason> {
    let runtime = InterruptibleRuntime::new().map_err(|error| ExitReason::Failed(format!("cannot start: {error}")))?;
    Ok(Rc::new(runtime))
}
