//! Settings of the agent. The process reads them from flags, environment and file, and passes them in.

use std::time::Duration;

use sindri_model::policy::DriftMode;
use sindri_model::{Entropy, ServiceAccount};

/// Fraction of the interval over which polls are spread, so that the agents of a fleet do not poll at the same time.
const JITTER_PARTS: u32 = 10;

/// Settings of one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Name of the agent at the broker.
    pub name: String,
    /// Name of the agent's cluster at the broker.
    pub cluster_name: String,
    /// Interval between two polls.
    pub polling_interval: Duration,
    /// The only namespace that the agent may touch; `None` for the whole cluster.
    pub namespace: Option<String>,
    /// Namespaces that no stack may use, besides the agent's own.
    pub reserved_namespaces: Vec<String>,
    /// ServiceAccount as which stacks are written that name none; `None` for the agent's own permissions.
    pub default_service_account: Option<ServiceAccount>,
    /// Treatment of objects that other clients changed.
    pub drift: DriftMode,
    /// Limit on deletions in one pass without an approval.
    pub brake: Brake,
    /// True for leader election by a Lease, so that two processes of one agent never act at the same time.
    pub lease: bool,
}

impl Settings {
    /// Default interval between two polls.
    pub const DEFAULT_POLLING_INTERVAL: Duration = Duration::from_secs(30);

    /// Returns the default settings for an agent of this name and cluster.
    pub fn new(name: String, cluster_name: String) -> Self {
        Self {
            name,
            cluster_name,
            polling_interval: Self::DEFAULT_POLLING_INTERVAL,
            namespace: None,
            reserved_namespaces: Vec::new(),
            default_service_account: None,
            drift: DriftMode::default(),
            brake: Brake::default(),
            lease: true,
        }
    }

    /// Returns the polling interval with random jitter; heartbeats use it too.
    pub(crate) fn jittered_interval(&self, entropy: &Entropy) -> Duration {
        let interval = self.polling_interval;
        let jitter = entropy.number_below((interval / JITTER_PARTS).as_millis() as u64);
        interval - interval / (2 * JITTER_PARTS) + Duration::from_millis(jitter)
    }
}

/// Brake on mass deletion. A revision that would delete more than both limits allow waits for an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brake {
    /// True if the brake is used.
    pub is_on: bool,
    /// Number of objects of a stack that may always be deleted in one pass.
    pub objects: usize,
    /// Percentage of a stack that may always be deleted in one pass.
    pub percent: u8,
}

impl Brake {
    /// Default of `objects`.
    pub const DEFAULT_OBJECTS: usize = 5;
    /// Default of `percent`.
    pub const DEFAULT_PERCENT: u8 = 50;
}

impl Default for Brake {
    fn default() -> Self {
        Self { is_on: true, objects: Self::DEFAULT_OBJECTS, percent: Self::DEFAULT_PERCENT }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_default_an_agent_corrects_drift_and_uses_the_brake() {
        let settings = Settings::new("east".to_owned(), "demo".to_owned());
        assert_eq!((settings.name.as_str(), settings.cluster_name.as_str()), ("east", "demo"));
        assert_eq!(settings.polling_interval, Duration::from_secs(30));
        assert_eq!((settings.namespace, settings.drift, settings.lease), (None, DriftMode::Correct, true));
        assert_eq!(settings.brake, Brake { is_on: true, objects: 5, percent: 50 });
    }
}
