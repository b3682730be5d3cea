//! Preview of the next pass of one stack.

use std::fmt::Write as _;
use std::sync::Arc;

use super::changes::find_all_changes;
use crate::cluster::Cluster;
use crate::cluster::reflector::Reflector;
use crate::pass::content::ContentSearch;
use crate::pass::ignored_values::copy_ignored_fields;
use crate::pass::inventory::load_inventory;
use crate::pass::observe::{Observation, read_live_objects};
use crate::pass::plan::{
    Hold, Plan, PlanInputs, find_adoption, find_excess, find_single_holds, make_plan, render_plan,
};
use crate::pass::resolve::{ResolveError, resolve_bundle};
use crate::pass::summary::PassError;
use crate::target::claims::Claims;
use crate::target::policy::EffectivePolicy;
use crate::target::revision::Revision;

/// Preview of a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackPreview {
    /// A line for each step, with its fields, and for each error.
    pub text: String,
    /// True if the pass would change the cluster.
    pub has_changes: bool,
    /// True if the pass would fail.
    pub has_errors: bool,
}

impl StackPreview {
    /// Returns the preview of a pass that fails for this reason.
    pub fn from_error(error: &str) -> Self {
        Self { text: format!("! {error}\n"), has_changes: false, has_errors: true }
    }
}

/// Previews the pass of a revision. An error, for example of the bundle, is part of the text.
pub async fn preview_stack(
    cluster: &Cluster,
    reflector: &Reflector,
    revision: &Revision,
    claims: &Arc<Claims>,
    policy: &EffectivePolicy,
) -> StackPreview {
    let preview = try_preview(cluster, reflector, revision, claims, policy).await;
    let mut preview = preview.unwrap_or_else(|error| StackPreview::from_error(&error.to_string()));
    if policy.is_suspended {
        preview.text.push_str("# the stack is suspended on this cluster: nothing is written before it is resumed\n");
    }
    if preview.text.is_empty() {
        preview.text.push_str("= nothing to do\n");
    }
    preview
}

async fn try_preview(
    cluster: &Cluster,
    reflector: &Reflector,
    revision: &Revision,
    claims: &Arc<Claims>,
    policy: &EffectivePolicy,
) -> Result<StackPreview, PassError> {
    let problems = policy.find_problems(revision.is_deletion_marker);
    if !problems.is_empty() {
        return Err(PassError::Policy(problems));
    }
    let (inventory, _) = load_inventory(cluster, revision.stack_id).await?;
    let bundle = revision.take_bundle().map_err(ResolveError::Bundle)?;
    let desired = resolve_bundle(cluster, revision, bundle, &policy.ignore).await?;
    let Observation { live, unreadable } = read_live_objects(cluster, reflector, &desired, &inventory).await;
    let (inventory, live, drift) = (&inventory, &live, policy.drift);
    let inputs = PlanInputs {
        inventory,
        live,
        unreadable: &unreadable,
        last_applied: None,
        claims,
        drift,
        releases_all: policy.releases_on_removal,
        is_impersonated: policy.service_account.is_some(),
        ready: None,
    };
    let mut plan = make_plan(&desired, inputs)?;
    copy_ignored_fields(cluster, &mut plan.writes).await?;
    let write_cluster = cluster.as_service_account(policy.service_account.as_ref());
    let found = find_all_changes(cluster, &write_cluster, &plan.writes).await;
    let has_rejections = found.iter().any(|found| found.has_error);
    let changes: Vec<_> = plan.writes.iter().map(|write| write.object.key.clone()).zip(found).collect();
    let unchanged = changes.iter().filter(|(_, found)| found.lines.is_empty()).count();
    plan.writes.retain(|write| changes.iter().any(|(key, found)| *key == write.object.key && !found.lines.is_empty()));
    let search = ContentSearch { cluster, stack: desired.stack, inventory, claims: &|| claims.clone() };
    let foreign = search.find_all_foreign(&plan).await;
    let excess = find_excess(&plan, inputs, &desired, &policy.brake);
    let holds = find_adoption(&plan).into_iter().chain(excess);
    let holds: Vec<Hold> = holds.chain(find_single_holds(&plan, &foreign, &policy.brake)).collect();
    let mut text = String::new();
    for line in render_plan(&plan, inventory, live, &holds, usize::MAX).lines() {
        text.push_str(&format!("{line}\n"));
        let of_line = changes.iter().find(|(key, _)| line[2..].split("  (").next() == Some(&key.to_string()));
        let lines = of_line.into_iter().flat_map(|(_, found)| &found.lines);
        lines.for_each(|line| text.push_str(&format!("    {line}\n")));
    }
    let has_errors = has_rejections || !unreadable.is_empty();
    for error in unreadable.into_errors() {
        text.push_str(&format!("! {error}\n"));
    }
    if unchanged > 0 {
        writeln!(text, "= {unchanged} objects are unchanged").expect("writing to a string cannot fail");
    }
    Ok(StackPreview { text, has_changes: changes_cluster(&plan), has_errors })
}

/// Returns true if a plan, whose writes all change something, changes the cluster, at once or later.
fn changes_cluster(plan: &Plan) -> bool {
    let writes = !plan.writes.is_empty() || !plan.delayed.is_empty() || !plan.releases.is_empty();
    writes || plan.all_deletes().next().is_some()
}
