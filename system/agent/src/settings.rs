//! How an agent runs: what its process reads from flags, environment and file, and hands in.

use std::time::Duration;

/// How the agent runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The name under which the broker knows it.
    pub name: String,
    /// The cluster under which the broker knows it.
    pub cluster_name: String,
    /// How often it polls.
    pub polling_interval: Duration,
    /// The one namespace that it may touch; without it, the whole cluster.
    pub namespace: Option<String>,
    /// What it does about objects that somebody else changed.
    pub drift: DriftMode,
    /// When a pass deletes too much to go on unasked.
    pub brake: Brake,
    /// Whether it holds a Lease in the cluster, so that two agents of one name never work at once.
    pub lease: bool,
}

impl Settings {
    /// The interval of the guide.
    pub const DEFAULT_POLLING_INTERVAL: Duration = Duration::from_secs(30);

    /// An agent of this name in this cluster, and everything else as it is when nobody says anything.
    pub fn new(name: String, cluster_name: String) -> Self {
        Self {
            name,
            cluster_name,
            polling_interval: Self::DEFAULT_POLLING_INTERVAL,
            namespace: None,
            drift: DriftMode::default(),
            brake: Brake::default(),
            lease: true,
        }
    }
}

/// What to do about an object that is not as it was declared, although nothing new is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DriftMode {
    /// Do not look: only what is newly declared is applied.
    Off,
    /// Look and tell, and leave it as it is.
    Detect,
    /// Put it right.
    #[default]
    Correct,
}

/// The brake on mass deletion. What would delete more than both bounds allow waits for an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brake {
    /// Whether there is one.
    pub is_on: bool,
    /// So many objects of a stack may go at once, whatever part of it they are.
    pub objects: usize,
    /// This part of a stack may go at once, however many objects it is.
    pub percent: u8,
}

impl Brake {
    /// So many objects, unless somebody says otherwise.
    pub const DEFAULT_OBJECTS: usize = 5;
    /// This part, unless somebody says otherwise.
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
    fn an_agent_of_which_only_the_name_is_said_corrects_drift_and_has_a_brake() {
        let settings = Settings::new("east".to_owned(), "demo".to_owned());
        assert_eq!((settings.name.as_str(), settings.cluster_name.as_str()), ("east", "demo"));
        assert_eq!(settings.polling_interval, Duration::from_secs(30));
        assert_eq!((settings.namespace, settings.drift, settings.lease), (None, DriftMode::Correct, true));
        assert_eq!(settings.brake, Brake { is_on: true, objects: 5, percent: 50 });
    }
}
