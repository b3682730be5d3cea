//! Renders a plan as text for people. Holds and deletes come first, because they are what a person decides about, and a text that
//! is too long loses its end.

use std::fmt::Display;

use sindri_model::text::to_printable;

use super::brake::{Hold, describe_owner};
use super::steps::Plan;
use crate::pass::inventory::Inventory;
use crate::pass::observe::LiveSet;

/// Bytes of a cut text that are kept for its last line.
const REST_BYTES: usize = 200;

/// Lines of a plan in a part of the text.
struct Part {
    /// Name of its steps, in the plural.
    name: &'static str,
    lines: Vec<String>,
}

impl Part {
    fn new(name: &'static str) -> Self {
        Self { name, lines: Vec::new() }
    }

    fn add(&mut self, sign: &str, step: &dyn Display, why: &str) {
        let why = if why.is_empty() { String::new() } else { format!("  ({why})") };
        self.lines.push(to_printable(&format!("{sign} {step}{why}")));
    }
}

/// Returns one line for each hold, then one for each delete that waits, for each other delete, and for each write. A text that would
/// be longer than `bytes_max` ends with the number of lines that it lacks.
pub fn render_plan(plan: &Plan, inventory: &Inventory, live: &LiveSet, holds: &[Hold], bytes_max: usize) -> String {
    let [mut reasons, mut held, mut deletes, mut writes] =
        ["reasons", "deletes that wait", "other deletes", "writes"].map(Part::new);
    for hold in holds {
        reasons.add("#", hold, "");
        if let Hold::Foreign { key, objects, .. } = hold {
            let inside = objects.iter().filter(|object| plan.deletes.iter().all(|delete| delete.entry.key != **object));
            inside.for_each(|object| held.add("-", object, &format!("deleted with {key}; waits for an approval")));
        }
    }
    for delete in &plan.deletes {
        let key = &delete.entry.key;
        match holds.iter().any(|hold| hold.key().is_none_or(|held| *held == **key)) {
            true => held.add("-", key, "waits for an approval"),
            false => deletes.add("-", key, ""),
        }
    }
    plan.later_deletes.iter().for_each(|key| deletes.add("-", key, "deleted after the last wave or stage"));
    plan.releases.iter().for_each(|one| deletes.add("-", &one.entry.key, "kept, and released from the stack"));
    plan.terminating.iter().for_each(|key| deletes.add("-", key, "is already being deleted"));
    plan.unread.iter().for_each(|key| deletes.add("-", key, "waits until every kind can be read"));
    for write in &plan.writes {
        let key = &write.object.key;
        match (live.get(key), inventory.get(key)) {
            (None, None) => writes.add("+", key, "new"),
            (None, Some(_)) => writes.add("+", key, "missing"),
            (Some(_), None) => match plan.adoptions.get(key) {
                Some(owner) => writes.add("~", key, &format!("adopted from stack {}", describe_owner(owner))),
                None => writes.add("~", key, "adopted"),
            },
            (Some(_), Some(_)) if plan.drifted.contains(key) => writes.add("~", key, "changed by another client"),
            (Some(_), Some(_)) => writes.add("~", key, ""),
        }
    }
    plan.checks.iter().for_each(|check| writes.add("?", &check.object.key, "compared only"));
    for key in plan.drifted.iter().filter(|key| plan.writes.iter().all(|write| write.object.key != **key)) {
        writes.add("!", key, "changed by another client, not corrected");
    }
    plan.delayed.iter().for_each(|key| writes.add("~", key, "is being deleted, and applied once it is gone"));
    join_parts(&[reasons, held, deletes, writes], bytes_max)
}

/// Joins the lines, as many as there is room for.
fn join_parts(parts: &[Part], bytes_max: usize) -> String {
    let bytes: usize = parts.iter().flat_map(|part| &part.lines).map(|line| line.len() + 1).sum();
    let room = if bytes <= bytes_max { bytes } else { bytes_max.saturating_sub(REST_BYTES) };
    let (mut text, mut missing) = (String::new(), Vec::new());
    for part in parts {
        let mut left = 0;
        for line in &part.lines {
            // Nothing after the first line that is left out, so that the order tells what is missing.
            if left > 0 || !missing.is_empty() || text.len() + line.len() + 1 > room {
                left += 1;
            } else {
                text.push_str(line);
                text.push('\n');
            }
        }
        if left > 0 {
            missing.push(format!("{left} {}", part.name));
        }
    }
    if !missing.is_empty() {
        text.push_str(&format!("# this text is cut; it lacks {}\n", missing.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_cut_says_how_many_steps_of_each_kind_it_lacks() {
        let part = |name, count| Part { name, lines: (0..count).map(|number| format!("- {name} {number}")).collect() };
        let parts = [part("deletes", 3), part("writes", 100)];
        let whole = join_parts(&parts, 100_000);
        assert_eq!(whole.lines().count(), 103);
        assert_eq!(join_parts(&parts, whole.len()), whole, "it fits exactly");
        let cut = join_parts(&parts, 700);
        assert!(cut.len() <= 700, "{}", cut.len());
        let shown = cut.lines().filter(|line| line.starts_with("- writes")).count();
        assert_eq!(cut.lines().filter(|line| line.starts_with("- deletes")).count(), 3);
        assert!(cut.ends_with(&format!("# this text is cut; it lacks {} writes\n", 100 - shown)), "{cut}");
        let nothing = join_parts(&parts, 0);
        assert_eq!(nothing, "# this text is cut; it lacks 3 deletes, 100 writes\n");
    }
}
