//! How a deployment gets from old replica sets to the new one: step by step, at once, or in proportion when it is resized.

use jiff::Timestamp;
use serde_json::Value;

use super::deployment::{CONTROLLER, Rollout, revision, wanted};
use super::owned_objects::{Owned, has_ended};
use super::writes::number;
use crate::object::fields::text;
use crate::server::ApiServer;

fn available(set: &Owned) -> i64 {
    number(&set.object, "/status/availableReplicas")
}

impl ApiServer {
    /// A rolling update: the new set grows as far as the surge allows, the old ones shrink as far as enough is available.
    pub(super) fn roll(&mut self, now: Timestamp, rollout: &mut Rollout) {
        let Some(new) = rollout.new.clone() else { return };
        let size = wanted(&new.object);
        let target = if size > rollout.wanted() { rollout.wanted() } else { rollout.size_of_new() };
        let grown = size != rollout.wanted() && self.resize(now, rollout, &new, target);
        if grown || self.shrink_old(now, rollout) {
            return self.look_and_tell(now, rollout);
        }
        self.conclude(now, rollout);
    }

    fn look_and_tell(&mut self, now: Timestamp, rollout: &Rollout) {
        if let Some(rollout) = self.rollout(now, &rollout.key) {
            self.tell_progress(now, &rollout, true);
        }
    }

    /// Takes replicas from old sets: first those that are not available anyway, then as many as can be spared.
    fn shrink_old(&mut self, now: Timestamp, rollout: &Rollout) -> bool {
        if rollout.old.iter().all(|set| wanted(&set.object) == 0) {
            return false;
        }
        let least = rollout.wanted() - rollout.may_miss();
        let starting = rollout.new.as_ref().map_or(0, |set| wanted(&set.object) - available(set));
        let most = rollout.sum("/spec/replicas") - least - starting;
        if most <= 0 {
            return false;
        }
        let mut sizes: Vec<i64> = rollout.old.iter().map(|set| wanted(&set.object)).collect();
        let mut cleaned = 0;
        for (size, set) in sizes.iter_mut().zip(&rollout.old) {
            let idle = (*size - available(set)).max(0).min(most - cleaned);
            *size -= idle;
            cleaned += idle;
        }
        let mut spare = rollout.sum("/status/availableReplicas") - least;
        for size in &mut sizes {
            let taken = (*size).min(spare.max(0));
            *size -= taken;
            spare -= taken;
        }
        let mut shrunk = false;
        for (size, set) in sizes.into_iter().zip(&rollout.old) {
            if size != wanted(&set.object) {
                shrunk |= self.resize(now, rollout, set, size);
            }
        }
        shrunk
    }

    /// All of the old before anything of the new.
    pub(super) fn recreate(&mut self, now: Timestamp, rollout: &mut Rollout) {
        let mut shrunk = false;
        for set in rollout.old.iter().filter(|set| wanted(&set.object) > 0) {
            shrunk |= self.resize(now, rollout, set, 0);
        }
        if shrunk || self.old_pods_run(now, rollout) {
            return self.look_and_tell(now, rollout);
        }
        let current = self.rollout(now, &rollout.key);
        let Some(current) = current.and_then(|current| self.renumber(now, current, true)) else { return };
        let Some(new) = current.new.clone() else { return };
        if self.resize(now, &current, &new, current.wanted()) {
            return self.look_and_tell(now, &current);
        }
        self.conclude(now, &current);
    }

    fn old_pods_run(&mut self, now: Timestamp, rollout: &Rollout) -> bool {
        let sets: Vec<Value> = rollout.old.iter().map(|set| Value::clone(&set.object)).collect();
        sets.iter().any(|set| {
            let pods = self.claim(now, CONTROLLER, set, ("", "pods"));
            pods.iter().any(|pod| !has_ended(&pod.object))
        })
    }

    /// Another size while nothing else changes: everything for the only active set, or a share for each.
    pub(super) fn rescale(&mut self, now: Timestamp, rollout: &mut Rollout) {
        let active: Vec<Owned> = rollout.sets().filter(|set| wanted(&set.object) > 0).cloned().collect();
        if active.len() <= 1 {
            let newest = rollout.old.iter().max_by_key(|set| revision(&set.object));
            let only = active.first().or(rollout.new.as_ref()).or(newest).cloned();
            if let Some(only) = only {
                self.resize(now, rollout, &only, rollout.wanted());
            }
        } else if rollout.new.as_ref().is_some_and(|new| is_saturated(rollout, new)) {
            for set in rollout.old.iter().filter(|set| wanted(&set.object) > 0) {
                self.resize(now, rollout, set, 0);
            }
        } else if rollout.rolls() {
            for (set, size) in shares(rollout, active) {
                self.resize(now, rollout, &set, size);
            }
        }
        if let Some(found) = self.rollout(now, &rollout.key.clone()) {
            *rollout = found;
        }
    }
}

fn is_saturated(rollout: &Rollout, new: &Owned) -> bool {
    let desired = new.object.pointer("/metadata/annotations/deployment.kubernetes.io~1desired-replicas");
    let desired = desired.and_then(Value::as_str).and_then(|text| text.parse().ok());
    wanted(&new.object) == rollout.wanted() && desired == Some(rollout.wanted()) && available(new) == rollout.wanted()
}

/// How the sets divide a new size among themselves: in proportion, the rest to the largest.
fn shares(rollout: &Rollout, mut active: Vec<Owned>) -> Vec<(Owned, i64)> {
    let allowed = if rollout.wanted() > 0 { rollout.wanted() + rollout.surge() } else { 0 };
    let before: i64 = active.iter().map(|set| wanted(&set.object)).sum();
    let missing = allowed - before;
    // The largest first; of equal ones the newer first when growing, the older first when shrinking.
    active.sort_by(|one, other| {
        let created = |set: &Owned| text(&set.object, "/metadata/creationTimestamp").to_owned();
        let age = if missing > 0 { created(other).cmp(&created(one)) } else { created(one).cmp(&created(other)) };
        wanted(&other.object).cmp(&wanted(&one.object)).then(age)
    });
    let mut given = 0;
    let mut sizes: Vec<(Owned, i64)> = Vec::new();
    for set in active {
        let size = wanted(&set.object);
        let part = proportion(&set, rollout, missing, given);
        given += part;
        sizes.push((set, size + part));
    }
    if let Some((_, first)) = sizes.first_mut() {
        *first = (*first + missing - given).max(0);
    }
    sizes
}

fn proportion(set: &Owned, rollout: &Rollout, missing: i64, given: i64) -> i64 {
    let size = wanted(&set.object);
    let left = missing - given;
    if size == 0 || missing == 0 || left == 0 {
        return 0;
    }
    let most = set.object.pointer("/metadata/annotations/deployment.kubernetes.io~1max-replicas");
    let most: i64 = most.and_then(Value::as_str).and_then(|text| text.parse().ok()).unwrap_or_default();
    let of = if most > 0 { most } else { number(&rollout.deployment, "/status/replicas").max(1) };
    // Rounded to the nearest, halves up, without floating point.
    let scaled = 2 * size * (rollout.wanted() + rollout.surge()) + of;
    let part = scaled.div_euclid(2 * of) - size;
    if missing > 0 { part.min(left) } else { part.max(left) }
}
