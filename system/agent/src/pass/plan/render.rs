//! A plan as people read it.

use std::fmt::Write as _;

use super::brake::Hold;
use super::planner::Plan;
use crate::pass::inventory::Inventory;
use crate::pass::observe::LiveSet;

impl Plan {
    /// One line for each step, in the order in which they would be carried out, then what is held back.
    pub fn shown(&self, inventory: &Inventory, live: &LiveSet, holds: &[Hold]) -> String {
        let mut text = String::new();
        let mut line = |sign: &str, what: &dyn std::fmt::Display, why: &str| {
            let why = if why.is_empty() { String::new() } else { format!("  ({why})") };
            writeln!(text, "{sign} {what}{why}").expect("a string takes every line");
        };
        for write in &self.writes {
            let key = &write.object.key;
            match (live.get(key), inventory.get(key)) {
                (None, None) => line("+", key, "new"),
                (None, Some(_)) => line("+", key, "missing"),
                (Some(_), None) => line("~", key, "adopted"),
                (Some(_), Some(_)) if self.drifted.contains(key) => line("~", key, "changed by someone else"),
                (Some(_), Some(_)) => line("~", key, ""),
            }
        }
        for check in &self.checks {
            line("?", &check.object.key, "compared only");
        }
        for key in self.drifted.iter().filter(|key| self.writes.iter().all(|write| write.object.key != **key)) {
            line("!", key, "changed by someone else, and left so");
        }
        for delete in &self.deletes {
            let key = &delete.entry.key;
            let is_held = holds.iter().any(|hold| hold.key().is_none_or(|held| *held == **key));
            line("-", key, if is_held { "waits for an approval" } else { "" });
        }
        for key in &self.leaving {
            line("-", key, "is already being deleted");
        }
        for hold in holds {
            line("#", hold, "");
        }
        text
    }
}
