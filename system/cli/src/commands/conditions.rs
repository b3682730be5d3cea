//! Second part of `sindri status STACK`: the stack's conditions on each cluster.

use sindri_client::Client;
use sindri_model::StackId;
use sindri_model::wire::{AgentStackStatus, Condition, ConditionStatus, condition};

use crate::failure::Failure;
use crate::table::format_table;

/// Condition types that have a column, in the order in which a stack usually reaches them.
const COLUMNS: [&str; 6] = [
    condition::ACCEPTED,
    condition::APPLIED,
    condition::READY,
    condition::DRIFTED,
    condition::BLOCKED,
    condition::DELETING,
];

/// Formats the conditions of a stack; `None` if no agent has reported any.
pub(crate) async fn describe(client: &Client, name: &str, stack: StackId) -> Result<Option<String>, Failure> {
    let status = client.get_stack_status(stack).await?;
    if status.agents.iter().all(|agent| agent.conditions.is_empty()) {
        return Ok(None);
    }
    let rows: Vec<_> = status.agents.iter().map(format_row).collect();
    let header =
        ["CLUSTER", "AGENT", "SEQUENCE", "ACCEPTED", "APPLIED", "READY", "DRIFTED", "BLOCKED", "DELETING", "REASON"];
    Ok(Some(format!("stack {name} is {}\n{}", status.state, format_table(header, &rows))))
}

fn format_row(agent: &AgentStackStatus) -> [String; 10] {
    let sequence = agent.sequence_id.map_or_else(|| "-".to_owned(), |sequence| sequence.to_string());
    let status = |kind: &str| {
        let condition = agent.conditions.iter().find(|condition| condition.kind == kind);
        condition.map_or_else(|| "-".to_owned(), |condition| condition.status.to_string())
    };
    let [accepted, applied, ready, drifted, blocked, deleting] = COLUMNS.map(status);
    let (cluster, name, reason) = (agent.cluster_name.clone(), agent.name.clone(), explain(&agent.conditions));
    [cluster, name, sequence, accepted, applied, ready, drifted, blocked, deleting, reason]
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
