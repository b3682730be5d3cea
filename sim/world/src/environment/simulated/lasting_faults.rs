//! Dead and paused hosts and partitions that are in effect, each with its causes. A fault of the scenario lasts until the scenario ends it,
//! also if an explored fault of the same host or link ends meanwhile.

use std::collections::BTreeSet;

/// Cause of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// A step of the scenario.
    Scenario,
    /// A fault that a seed adds.
    Exploration,
}

/// A fault that lasts until it is ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LastingFault {
    /// The process on this host was killed.
    Dead(String),
    /// The process on this host is stopped.
    Paused(String),
    /// These hosts cannot reach each other; in the order of their names.
    Partition([String; 2]),
}

impl LastingFault {
    /// Returns the partition between two hosts.
    pub fn partition(mut between: [String; 2]) -> Self {
        between.sort();
        Self::Partition(between)
    }
}

/// The faults that are in effect.
#[derive(Debug, Default)]
pub struct LastingFaults(BTreeSet<(LastingFault, Cause)>);

impl LastingFaults {
    /// Returns true if a fault is in effect.
    pub fn contains(&self, fault: &LastingFault) -> bool {
        self.0.iter().any(|(lasting, _)| lasting == fault)
    }

    /// Adds a cause of a fault; returns true if the fault begins.
    pub fn begin(&mut self, fault: LastingFault, cause: Cause) -> bool {
        let begins = !self.contains(&fault);
        self.0.insert((fault, cause));
        begins
    }

    /// Removes a cause of a fault; returns true if the fault ends.
    pub fn end(&mut self, fault: LastingFault, cause: Cause) -> bool {
        let entry = (fault, cause);
        self.0.remove(&entry) && !self.contains(&entry.0)
    }

    /// Returns every fault with each of its causes.
    pub fn list(&self) -> Vec<(LastingFault, Cause)> {
        self.0.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_explored_fault_does_not_end_the_one_of_the_scenario() {
        let link = |one: &str, other: &str| LastingFault::partition([one.to_owned(), other.to_owned()]);
        let mut faults = LastingFaults::default();
        assert!(faults.begin(link("broker", "east"), Cause::Scenario));
        assert!(!faults.begin(link("east", "broker"), Cause::Exploration));
        assert!(!faults.end(link("east", "broker"), Cause::Exploration));
        assert!(faults.contains(&link("east", "broker")));
        assert!(faults.end(link("east", "broker"), Cause::Scenario));
        assert!(!faults.contains(&link("broker", "east")));
        assert!(!faults.end(link("east", "broker"), Cause::Scenario), "it has ended already");
    }

    #[test]
    fn a_step_does_not_end_an_explored_fault() {
        let dead = || LastingFault::Dead("broker".to_owned());
        let mut faults = LastingFaults::default();
        assert!(faults.begin(dead(), Cause::Exploration));
        assert!(!faults.begin(dead(), Cause::Scenario));
        assert!(!faults.end(dead(), Cause::Scenario));
        assert!(faults.end(dead(), Cause::Exploration));
        assert_eq!(faults.list(), []);
    }
}
