//! Tests of the stored recordings, and of recording with a real API server.
//!
//! `cargo xtask test` builds the control plane and then runs all of these. A plain `cargo test` runs only those that
//! need no control plane, and lists the others as ignored.
#![expect(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod command;
mod stored;
mod twice;

use std::path::Path;

/// The project's directory.
fn root() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).unwrap()
}
