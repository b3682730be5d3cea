//! Decides the steps of one pass: a pure function of the observed state.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::observed::ObservedShapes;
use super::ownership::{OwnershipScheme, RecordTiming, has_finalizer};
use super::records::record_name;
use super::resource::{declared_by, declarer, desired_resource};
use crate::compare::{covers, overlay};
use crate::object::{is_deleting, name};

/// One step of a pass.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Add the finalizer to the shape.
    AddFinalizer,
    /// Create the record of a resource.
    Record(Value),
    /// Create a resource.
    Create(Value),
    /// Update a resource: the live object with the desired fields.
    Update(Value),
    /// Delete a resource with the observed UID.
    Delete(Value),
    /// Delete the record with this name.
    DeleteRecord(String),
    /// Remove the finalizer from the shape.
    RemoveFinalizer,
    /// Set phase and message in the status of the shape.
    SetStatus(&'static str, String),
}

/// Groups of steps, and resources whose ownership cannot be proved.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Steps for one shape, or for the remains of a deleted one (None). A group ends at the first step that fails.
    pub groups: Vec<(Option<Value>, Vec<Step>)>,
    /// Names of resources that have the annotation but no shape, and that the scheme does not recognize.
    pub leaks: BTreeSet<String>,
}

/// Plans the steps of one pass.
pub fn plan(scheme: &dyn OwnershipScheme, observed: &ObservedShapes) -> Plan {
    let resources: BTreeMap<&str, &Value> =
        observed.resources.iter().map(|resource| (name(resource), resource)).collect();
    let mut plan = Plan::default();
    let mut declared = BTreeSet::new();
    for shape in &observed.shapes {
        let resource = scheme.resource_name(shape);
        let live = resources.get(resource.as_str()).copied();
        let is_kept = scheme.uses_finalizer() && has_finalizer(shape);
        let steps = match (is_deleting(shape), is_kept) {
            (false, _) => plan_existing(scheme, observed, shape, live),
            (true, true) => plan_deletion(scheme, observed, live),
            // Its resource is handled like one without a shape.
            (true, false) => continue,
        };
        declared.insert(resource);
        plan.groups.push((Some(shape.clone()), steps));
    }
    plan_undeclared(scheme, observed, &declared, &mut plan);
    plan
}

/// Handles resources without a shape: those of the controller are deleted, those that cannot be proved to be its own
/// are reported, and records without a resource are deleted.
fn plan_undeclared(
    scheme: &dyn OwnershipScheme,
    observed: &ObservedShapes,
    declared: &BTreeSet<String>,
    plan: &mut Plan,
) {
    for resource in observed.resources.iter().filter(|resource| !declared.contains(name(resource))) {
        if scheme.owns(resource, observed) {
            plan.groups
                .push((None, add_record_deletion(observed, name(resource), vec![Step::Delete(resource.clone())])));
        } else if !declarer(resource).is_empty() {
            plan.leaks.insert(name(resource).to_owned());
        }
    }
    let existing: BTreeSet<&str> = observed.resources.iter().map(name).collect();
    for resource in observed
        .records
        .iter()
        .filter(|resource| !existing.contains(resource.as_str()) && !declared.contains(*resource))
    {
        plan.groups.push((None, vec![Step::DeleteRecord(record_name(resource))]));
    }
}

fn add_record_deletion(observed: &ObservedShapes, resource: &str, mut steps: Vec<Step>) -> Vec<Step> {
    if observed.records.contains(resource) {
        steps.push(Step::DeleteRecord(record_name(resource)));
    }
    steps
}

/// Steps for a shape that is being deleted and has the finalizer: first its resource is deleted.
fn plan_deletion(scheme: &dyn OwnershipScheme, observed: &ObservedShapes, live: Option<&Value>) -> Vec<Step> {
    let owned = live.filter(|resource| scheme.owns(resource, observed));
    owned.map(|resource| Step::Delete(resource.clone())).into_iter().chain([Step::RemoveFinalizer]).collect()
}

/// Steps for a shape that must have its resource.
fn plan_existing(
    scheme: &dyn OwnershipScheme,
    observed: &ObservedShapes,
    shape: &Value,
    live: Option<&Value>,
) -> Vec<Step> {
    let desired = desired_resource(scheme, shape);
    let resource_name = name(&desired).to_owned();
    // The annotation contains the UID of this shape: the resource was created for it, even if it lost its labels.
    let is_owned = |live: &Value| scheme.owns(live, observed) || declarer(live) == declared_by(shape);
    if live.is_some_and(|live| !is_owned(live)) {
        let message = format!("{resource_name} exists and does not belong to this controller");
        return vec![Step::SetStatus("Blocked", message)];
    }
    let mut steps = Vec::new();
    if scheme.uses_finalizer() && !has_finalizer(shape) {
        steps.push(Step::AddFinalizer);
    }
    let is_recorded = observed.records.contains(&resource_name);
    let record = (!is_recorded).then(|| Step::Record(scheme.record_form().build(shape, &resource_name)));
    let (first, last) = match scheme.record_timing() {
        RecordTiming::Never => (None, None),
        RecordTiming::BeforeCreate => (record, None),
        RecordTiming::AfterCreate => (None, record),
    };
    steps.extend(first);
    match live {
        None => steps.push(Step::Create(desired)),
        Some(live) if covers(live, &desired) => {}
        Some(live) => {
            let mut updated = live.clone();
            overlay(&mut updated, &desired);
            steps.push(Step::Update(updated));
        }
    }
    steps.extend(last);
    steps.push(Step::SetStatus("Made", resource_name));
    steps
}
