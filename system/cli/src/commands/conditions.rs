//! The second part of `sindri status STACK`: each cluster, and what its agent says about the stack.

use sindri_client::Client;
use sindri_model::StackId;
use sindri_model::wire::{AgentStackStatus, Condition, ConditionStatus, condition};

use crate::failure::Failure;
use crate::table::table;

/// The columns, in the order in which a stack goes through them.
const SHOWN: [&str; 6] = [
    condition::ACCEPTED,
    condition::APPLIED,
    condition::READY,
    condition::DRIFTED,
    condition::BLOCKED,
    condition::DELETING,
];

/// What can be shown of a stack; nothing if no agent has said anything.
pub(crate) async fn of_stack(client: &Client, name: &str, stack: StackId) -> Result<Option<String>, Failure> {
    let status = client.stack_status(stack).await?;
    if status.agents.iter().all(|agent| agent.conditions.is_empty()) {
        return Ok(None);
    }
    let rows: Vec<_> = status.agents.iter().map(row).collect();
    let head =
        ["CLUSTER", "AGENT", "SEQUENCE", "ACCEPTED", "APPLIED", "READY", "DRIFTED", "BLOCKED", "DELETING", "WHY"];
    Ok(Some(format!("stack {name} is {}\n{}", status.state, table(head, &rows))))
}

fn row(agent: &AgentStackStatus) -> [String; 10] {
    let sequence = agent.sequence_id.map_or_else(|| "-".to_owned(), |sequence| sequence.to_string());
    let word = |kind: &str| {
        let known = agent.conditions.iter().find(|condition| condition.kind == kind);
        known.map_or_else(|| "-".to_owned(), |condition| condition.status.to_string())
    };
    let [accepted, applied, ready, drifted, blocked, deleting] = SHOWN.map(word);
    let (cluster, name, why) = (agent.cluster_name.clone(), agent.name.clone(), why(&agent.conditions));
    [cluster, name, sequence, accepted, applied, ready, drifted, blocked, deleting, why]
}

/// What people should read: the words of each condition that is not as it should be, and of those without a column.
fn why(conditions: &[Condition]) -> String {
    let said = conditions.iter().filter(|condition| is_news(condition)).map(|condition| {
        let words = [condition.reason.as_str(), condition.message.as_str()];
        let words: Vec<&str> = words.into_iter().filter(|words| !words.is_empty()).collect();
        format!("{}={} {}", condition.kind, condition.status, words.join(": ")).trim_end().to_owned()
    });
    said.collect::<Vec<_>>().join("; ")
}

fn is_news(condition: &Condition) -> bool {
    match condition.kind.as_str() {
        // Applied, and not in place all the same.
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
    fn only_what_is_not_as_it_should_be_is_explained() {
        let conditions = [
            condition("Applied", ConditionStatus::True, "Applied", "all 3 objects"),
            condition("Drifted", ConditionStatus::False, "InSync", ""),
            condition("Paused", ConditionStatus::False, "", ""),
            condition("Ready", ConditionStatus::Unknown, "NotReady", "0 of 2 pods"),
        ];
        assert_eq!(why(&conditions), "Paused=False; Ready=Unknown NotReady: 0 of 2 pods");
    }

    #[test]
    fn what_the_cluster_rewrites_is_explained_although_it_was_applied() {
        let rewritten = condition("Applied", ConditionStatus::True, "Rewritten", "ConfigMap default/note: data.a");
        assert_eq!(why(&[rewritten]), "Applied=True Rewritten: ConfigMap default/note: data.a");
    }
}
