//! The choice between the two engines.

use super::fast_engine::FastEngine;
use super::interface::Engine;
use super::turmoil_engine::TurmoilEngine;

/// Engine that runs a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EngineKind {
    /// One runtime per host on a shared virtual clock.
    Fast,
    /// The turmoil crate.
    Turmoil,
}

impl EngineKind {
    /// Both, in the order in which they are listed.
    pub const ALL: [EngineKind; 2] = [EngineKind::Fast, EngineKind::Turmoil];

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            EngineKind::Fast => "fast",
            EngineKind::Turmoil => "turmoil",
        }
    }

    /// Creates an engine without hosts. The calling thread must come from [`crate::isolate`].
    pub fn engine(self, seed: u64) -> Box<dyn Engine> {
        match self {
            EngineKind::Fast => Box::new(FastEngine::new(seed)),
            EngineKind::Turmoil => Box::new(TurmoilEngine::new(seed)),
        }
    }
}
