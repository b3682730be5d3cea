//! What has to be done: a pure function of what was seen.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::definition::{declared_by, note_on, record_name, thing};
use super::scheme::{Records, Scheme, has_finalizer};
use crate::client::{is_deleting, name};
use crate::database::{covers, overlay};

/// What was seen, of everything or of one declaration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    /// The declarations.
    pub declarations: Vec<Value>,
    /// The things in the other API, ours and those of others.
    pub things: Vec<Value>,
    /// The names of things that we recorded.
    pub records: BTreeSet<String>,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Keep the declaration until its thing is gone.
    Hold,
    /// Record the name of a thing.
    Record(String),
    /// Make a thing.
    Create(Value),
    /// Put a thing right; this is what was read with what is wanted over it.
    Update(Value),
    /// Remove a thing, and only the one that was seen.
    Remove(Value),
    /// Forget the record of this name.
    Forget(String),
    /// Let the declaration go.
    Release,
    /// Say on the declaration how it is.
    Tell(&'static str, String),
}

/// Groups of steps, and what seems to be ours and cannot be proved to be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Each is carried out in order until a step fails; each for a declaration, or for what is left of one.
    pub groups: Vec<(Option<Value>, Vec<Step>)>,
    /// Names of things with our note on them that no declaration wants and that the scheme does not know.
    pub leaks: BTreeSet<String>,
}

/// Plans.
pub fn plan(scheme: &dyn Scheme, view: &View) -> Plan {
    let things: BTreeMap<&str, &Value> = view.things.iter().map(|thing| (name(thing), thing)).collect();
    let mut plan = Plan::default();
    let mut spoken_for = BTreeSet::new();
    for declaration in &view.declarations {
        let wanted = scheme.thing_name(declaration);
        let found = things.get(wanted.as_str()).copied();
        let is_held = scheme.holds() && has_finalizer(declaration);
        let steps = match (is_deleting(declaration), is_held) {
            (false, _) => assert_there(scheme, view, declaration, found),
            (true, true) => let_go(scheme, view, found),
            // What is left of it is nobody's any more.
            (true, false) => continue,
        };
        spoken_for.insert(wanted);
        plan.groups.push((Some(declaration.clone()), steps));
    }
    sweep(scheme, view, &spoken_for, &mut plan);
    plan
}

/// What nobody declares: ours goes, what only seems to be ours is reported, records of nothing are forgotten.
fn sweep(scheme: &dyn Scheme, view: &View, spoken_for: &BTreeSet<String>, plan: &mut Plan) {
    for thing in view.things.iter().filter(|thing| !spoken_for.contains(name(thing))) {
        if scheme.owns(thing, view) {
            plan.groups.push((None, with_record(view, name(thing), vec![Step::Remove(thing.clone())])));
        } else if !note_on(thing).is_empty() {
            plan.leaks.insert(name(thing).to_owned());
        }
    }
    let there: BTreeSet<&str> = view.things.iter().map(name).collect();
    for thing in view.records.iter().filter(|thing| !there.contains(thing.as_str()) && !spoken_for.contains(*thing)) {
        plan.groups.push((None, vec![Step::Forget(record_name(thing))]));
    }
}

fn with_record(view: &View, thing: &str, mut steps: Vec<Step>) -> Vec<Step> {
    if view.records.contains(thing) {
        steps.push(Step::Forget(record_name(thing)));
    }
    steps
}

/// A declaration that is being deleted and that we hold: it goes after its thing.
fn let_go(scheme: &dyn Scheme, view: &View, found: Option<&Value>) -> Vec<Step> {
    let ours = found.filter(|thing| scheme.owns(thing, view));
    ours.map(|thing| Step::Remove(thing.clone())).into_iter().chain([Step::Release]).collect()
}

/// A declaration that is to have its thing.
fn assert_there(scheme: &dyn Scheme, view: &View, declaration: &Value, found: Option<&Value>) -> Vec<Step> {
    let wanted = thing(scheme, declaration);
    let called = name(&wanted).to_owned();
    // Its note names this very declaration: whatever other mark it lost, it was made for it.
    let is_ours = |found: &Value| scheme.owns(found, view) || note_on(found) == declared_by(declaration);
    if found.is_some_and(|found| !is_ours(found)) {
        return vec![Step::Tell("Blocked", format!("{called} exists and is not ours"))];
    }
    let mut steps = Vec::new();
    if scheme.holds() && !has_finalizer(declaration) {
        steps.push(Step::Hold);
    }
    let record = (!view.records.contains(&called)).then(|| Step::Record(called.clone()));
    let (first, last) = match scheme.records() {
        Records::Never => (None, None),
        Records::First => (record, None),
        Records::Last => (None, record),
    };
    steps.extend(first);
    match found {
        None => steps.push(Step::Create(wanted)),
        Some(found) if covers(found, &wanted) => {}
        Some(found) => {
            let mut right = found.clone();
            overlay(&mut right, &wanted);
            steps.push(Step::Update(right));
        }
    }
    steps.extend(last);
    steps.push(Step::Tell("Made", called));
    steps
}
