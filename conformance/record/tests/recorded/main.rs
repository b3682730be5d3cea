//! What is recorded is what the pinned version says, now and whenever it is recorded again.
//!
//! `cargo xtask test` builds the control plane and then runs all of these. A plain `cargo test` runs only those that
//! need no control plane, and names the others.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod command;
mod kept;
mod twice;

use std::path::Path;

/// The project's directory.
fn root() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).unwrap()
}
