//! Renders a plan as text for people.

use std::fmt::Write as _;

use super::brake::Hold;
use super::steps::Plan;
use crate::pass::inventory::Inventory;
use crate::pass::observe::LiveSet;

/// Returns one line for each step in the order of execution, then one for each hold.
pub fn render_plan(plan: &Plan, inventory: &Inventory, live: &LiveSet, holds: &[Hold]) -> String {
    let mut text = String::new();
    let mut line = |sign: &str, what: &dyn std::fmt::Display, why: &str| {
        let why = if why.is_empty() { String::new() } else { format!("  ({why})") };
        writeln!(text, "{sign} {what}{why}").expect("writing to a string cannot fail");
    };
    for write in &plan.writes {
        let key = &write.object.key;
        match (live.get(key), inventory.get(key)) {
            (None, None) => line("+", key, "new"),
            (None, Some(_)) => line("+", key, "missing"),
            (Some(_), None) => match plan.adoptions.get(key) {
                Some(owner) => line("~", key, &format!("adopted from stack {owner}")),
                None => line("~", key, "adopted"),
            },
            (Some(_), Some(_)) if plan.drifted.contains(key) => line("~", key, "changed by another client"),
            (Some(_), Some(_)) => line("~", key, ""),
        }
    }
    for check in &plan.checks {
        line("?", &check.object.key, "compared only");
    }
    for key in plan.drifted.iter().filter(|key| plan.writes.iter().all(|write| write.object.key != **key)) {
        line("!", key, "changed by another client, not corrected");
    }
    for delete in &plan.deletes {
        let key = &delete.entry.key;
        let is_held = holds.iter().any(|hold| hold.key().is_none_or(|held| *held == **key));
        line("-", key, if is_held { "waits for an approval" } else { "" });
    }
    for key in &plan.later_deletes {
        line("-", key, "deleted after the last wave or stage");
    }
    for release in &plan.releases {
        line("-", &release.entry.key, "kept, and released from the stack");
    }
    for key in &plan.terminating {
        line("-", key, "is already being deleted");
    }
    for key in &plan.delayed {
        line("~", key, "is being deleted, and applied once it is gone");
    }
    for key in &plan.unread {
        line("-", key, "waits until every kind can be read");
    }
    for hold in holds {
        line("#", hold, "");
    }
    text
}
