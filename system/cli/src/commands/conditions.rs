//! Second part of `sindri status STACK`: the stack's conditions on each cluster.

use serde::Serialize;
use sindri_model::StackId;
use sindri_model::wire::{AgentStackStatus, Condition, ConditionStatus, condition};

use crate::failure::Failure;
use crate::output::{Cell, Column, Resource};
use crate::session::Session;

/// The conditions on one cluster.
#[derive(Serialize)]
#[serde(transparent)]
struct ConditionsRow(AgentStackStatus);

impl Resource for ConditionsRow {
    const KIND: &'static str = "cluster";

    fn name(&self) -> String {
        self.0.cluster_name.clone()
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("CLUSTER", |row: &Self| Cell::text(&row.0.cluster_name)),
            Column::new("AGENT", |row: &Self| Cell::text(&row.0.name)),
            Column::new("SEQUENCE", |row: &Self| Cell::optional(row.0.sequence_id)),
            Column::new("ACCEPTED", |row: &Self| row.status(condition::ACCEPTED)),
            Column::new("APPLIED", |row: &Self| row.status(condition::APPLIED)),
            Column::new("READY", |row: &Self| row.status(condition::READY)),
            Column::new("DRIFTED", |row: &Self| row.status(condition::DRIFTED)),
            Column::new("BLOCKED", |row: &Self| row.status(condition::BLOCKED)),
            Column::new("DELETING", |row: &Self| row.status(condition::DELETING)),
            Column::new("REASON", |row: &Self| Cell::text(explain(&row.0.conditions))),
        ]
    }
}

impl ConditionsRow {
    fn status(&self, kind: &str) -> Cell {
        Cell::optional(self.0.conditions.iter().find(|condition| condition.kind == kind).map(|found| found.status))
    }
}

/// Formats the conditions of a stack; `None` if no agent has reported any.
pub(crate) async fn describe(session: &Session, name: &str, stack: StackId) -> Result<Option<String>, Failure> {
    let status = session.client.get_stack_status(stack).await?;
    if status.agents.iter().all(|agent| agent.conditions.is_empty()) {
        return Ok(None);
    }
    let rows: Vec<_> = status.agents.into_iter().map(ConditionsRow).collect();
    Ok(Some(format!("stack {name} is {}\n{}", status.state, session.output.format_table(&rows))))
}

/// Formats reason and message of each condition that needs attention or has no column.
fn explain(conditions: &[Condition]) -> String {
    let explanations = conditions.iter().filter(|condition| needs_attention(condition)).map(|condition| {
        let parts = [condition.reason.as_str(), condition.message.as_str()];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        format!("{}={} {}", condition.kind, condition.status, parts.join(": ")).trim_end().to_owned()
    });
    explanations.collect::<Vec<_>>().join("; ")
}

fn needs_attention(condition: &Condition) -> bool {
    match condition.kind.as_str() {
        // Applied, but an admission webhook changed some of the declared values.
        condition::APPLIED if condition.reason == condition::REWRITTEN => true,
        condition::ACCEPTED | condition::APPLIED | condition::READY => condition.status != ConditionStatus::True,
        condition::DRIFTED | condition::BLOCKED | condition::DELETING => condition.status != ConditionStatus::False,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn condition(kind: &str, status: ConditionStatus, reason: &str, message: &str) -> Condition {
        let (kind, reason, message) = (kind.to_owned(), reason.to_owned(), message.to_owned());
        Condition { kind, status, reason, message, last_transition_time: Timestamp::UNIX_EPOCH }
    }

    #[test]
    fn only_conditions_that_need_attention_are_explained() {
        let conditions = [
            condition("Applied", ConditionStatus::True, "Applied", "all 3 objects"),
            condition("Drifted", ConditionStatus::False, "InSync", ""),
            condition("Paused", ConditionStatus::False, "", ""),
            condition("Ready", ConditionStatus::Unknown, "NotReady", "0 of 2 pods"),
        ];
        assert_eq!(explain(&conditions), "Paused=False; Ready=Unknown NotReady: 0 of 2 pods");
    }

    #[test]
    fn rewritten_fields_are_explained_although_they_were_applied() {
        let rewritten = condition("Applied", ConditionStatus::True, "Rewritten", "ConfigMap default/note: data.a");
        assert_eq!(explain(&[rewritten]), "Applied=True Rewritten: ConfigMap default/note: data.a");
    }
}
