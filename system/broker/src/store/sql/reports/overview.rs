//! Overview of stacks on clusters, in a fixed number of queries.

use jiff::Timestamp;
use sindri_model::policy::SUSPEND_ANNOTATION;
use sindri_model::wire::{Agent, Condition, RevisionOverview};
use sindri_model::{AgentId, Sequence, StackId};

use crate::store::records::{
    AssignmentRecord, ConditionSummary, OverviewFilter, OverviewRecords, OverviewStack, ReportedAssignment,
    ReportedOutcome, StoreError,
};
use crate::store::sql::shared::session::{Session, failed, fetch_all, fetch_batch};
use crate::store::sql::shared::values::{Row, row, values};
use crate::store::sql::tables::{agents, stacks};

/// Largest number of assignments of a page. A page has fewer stacks if there are many agents, and at least one.
const ASSIGNMENTS_MAX: usize = 200_000;

/// A query of the columns that [`read_assignment`] reads; the arguments are before and after the source of the rows. There are few
/// columns, because there may be a hundred thousand rows, and a message has at most 2,048 characters. The summary of a report is stored; only for reports from before it was
/// stored the conditions are read. An outcome is read if no later report has conditions.
macro_rules! assignments {
    ($before:literal, $rest:literal) => {
        concat!(
            $before,
            "SELECT assignments.agent_id, assignments.stack_id, CASE WHEN confirmed = 0 THEN removal END, status_sequence,
               CASE WHEN status_summary IS NOT NULL OR status_sequence IS NULL THEN substr(status_summary, 1, 2048) ELSE (
                 SELECT conditions FROM stack_status WHERE stack_status.agent_id = assignments.agent_id
                   AND stack_status.stack_id = assignments.stack_id) END,
               CASE WHEN reported IS NOT NULL AND (status_sequence IS NULL OR status_sequence < reported) THEN
                 reported || ' ' || succeeded || ' ' || coalesce(reported_at, 0) || ' ' || coalesce((
                   SELECT substr(message, 1, 2048) FROM events WHERE succeeded = 0 AND events.agent_id = assignments.agent_id
                     AND revision_id = (SELECT id FROM revisions WHERE sequence = reported)
                   ORDER BY position + 0 DESC LIMIT 1), '') END ",
            $rest
        )
    };
}

pub(crate) async fn read(session: &mut dyn Session, filter: OverviewFilter) -> Result<OverviewRecords, StoreError> {
    let agents = list_agents(session, &filter).await?;
    let limit = i64::try_from((ASSIGNMENTS_MAX / agents.len().max(1)).max(1)).map_err(failed)?;
    let limit = filter.page.limit.min(limit);
    // One more than the page has, to know whether it is the last.
    let mut stacks = list_stacks(session, &filter, limit.saturating_add(1)).await?;
    let is_full = i64::try_from(stacks.len()).map_err(failed)? > limit;
    stacks.truncate(usize::try_from(limit).map_err(failed)?);
    let is_everything = filter.generator.is_none() && filter.stack.is_none() && filter.page.after.is_none() && !is_full;
    let assignments = if is_everything {
        // In the order of the table: reading it once is faster than finding each row by its stack.
        let all = assignments!("", "FROM assignments WHERE wanted = 1 OR (removal IS NOT NULL AND confirmed = 0)");
        fetch_all(session, all, &[], read_assignment).await?
    } else {
        let of_stacks = assignments!(
            "WITH batch (stack_id) AS ({TEXT}) ",
            "FROM batch JOIN assignments ON assignments.stack_id = batch.stack_id
             WHERE wanted = 1 OR (removal IS NOT NULL AND confirmed = 0)"
        );
        let rows = stacks.iter().map(|known| row![known.stack.id]).collect();
        fetch_batch(session, of_stacks, rows, read_assignment).await?
    };
    Ok(OverviewRecords { agents, stacks, assignments, is_full })
}

/// Lists the reports about a stack of the agents that should have it or have to remove it.
pub(super) async fn list_of_stack(
    session: &mut dyn Session,
    stack: StackId,
) -> Result<Vec<ReportedAssignment>, StoreError> {
    let sql = assignments!(
        "",
        "FROM assignments JOIN agents ON agents.id = assignments.agent_id AND agents.deleted_at IS NULL
         WHERE assignments.stack_id = ?1 AND (wanted = 1 OR (removal IS NOT NULL AND confirmed = 0))"
    );
    let found = fetch_all(session, sql, values![stack], read_assignment).await?;
    Ok(found.into_iter().map(|assignment| assignment.reported).collect())
}

async fn list_agents(session: &mut dyn Session, filter: &OverviewFilter) -> Result<Vec<Agent>, StoreError> {
    let sql = agents::columns!(
        "FROM agents WHERE deleted_at IS NULL
          AND (CAST(?1 AS TEXT) IS NULL
            OR EXISTS (SELECT 1 FROM registrations WHERE registrations.agent_id = agents.id AND generator_id = ?1)
            OR EXISTS (SELECT 1 FROM assignments JOIN stacks ON stacks.id = assignments.stack_id
                       WHERE assignments.agent_id = agents.id AND stacks.generator_id = ?1
                         AND (wanted = 1 OR (removal IS NOT NULL AND confirmed = 0))))
          AND (CAST(?2 AS TEXT) IS NULL
            OR EXISTS (SELECT 1 FROM assignments WHERE assignments.agent_id = agents.id AND stack_id = ?2))
         ORDER BY name, cluster_name, id LIMIT ?3"
    );
    let limit = i64::try_from(ASSIGNMENTS_MAX).map_err(failed)?;
    fetch_all(session, sql, values![filter.generator, filter.stack, limit], agents::read).await
}

async fn list_stacks(
    session: &mut dyn Session,
    filter: &OverviewFilter,
    limit: i64,
) -> Result<Vec<OverviewStack>, StoreError> {
    // Without descriptions, which the overview does not have.
    let sql = "SELECT stacks.id, stacks.created_at, stacks.updated_at, stacks.deleted_at, stacks.name, CAST(NULL AS TEXT),
          stacks.generator_id, newest, newest_number, newest_at, newest_is_marker,
          (SELECT value FROM stack_annotations WHERE stack_annotations.stack_id = stacks.id AND key = ?5)
         FROM stacks
         WHERE (deleted_at IS NULL OR id IN (
             SELECT stack_id FROM assignments JOIN agents ON agents.id = assignments.agent_id AND agents.deleted_at IS NULL
             WHERE removal IS NOT NULL AND confirmed = 0))
           AND (CAST(?1 AS TEXT) IS NULL OR generator_id = ?1) AND (CAST(?2 AS TEXT) IS NULL OR id = ?2)
           AND (CAST(?3 AS TEXT) IS NULL OR (name, id) > (SELECT name, id FROM stacks WHERE id = ?3))
         ORDER BY name, id LIMIT ?4";
    let values = values![filter.generator, filter.stack, filter.page.after.clone(), limit, SUSPEND_ANNOTATION];
    fetch_all(session, sql, values, read_stack).await
}

fn read_stack(row: &mut Row) -> Result<OverviewStack, StoreError> {
    let stack = stacks::read(row)?;
    let (sequence, number, submitted_at): (Option<Sequence>, _, Option<_>) = (row.take()?, row.take()?, row.take()?);
    let is_deletion_marker = row.take()?;
    let newest = sequence.zip(submitted_at).map(|(sequence_id, submitted_at)| RevisionOverview {
        number,
        sequence_id,
        submitted_at,
        is_deletion_marker,
    });
    Ok(OverviewStack { stack, newest, suspension: row.take()? })
}

fn read_assignment(row: &mut Row) -> Result<AssignmentRecord, StoreError> {
    let (agent, stack): (AgentId, StackId) = (row.take()?, row.take()?);
    let pending_removal = row.take()?;
    let (sequence, report): (Option<Sequence>, Option<String>) = (row.take()?, row.take()?);
    let outcome: Option<String> = row.take()?;
    let summary = report.map(|report| read_report(&report)).transpose()?;
    let outcome = outcome.map(|outcome| read_outcome(&outcome)).transpose()?;
    let reported = ReportedAssignment { pending_removal, outcome, summary: sequence.zip(summary) };
    Ok(AssignmentRecord { agent, stack, reported })
}

/// Reads a stored summary, or the conditions as JSON.
fn read_report(text: &str) -> Result<ConditionSummary, StoreError> {
    if text.starts_with('[') {
        let conditions: Vec<Condition> = serde_json::from_str(text).map_err(failed)?;
        return Ok(ConditionSummary::from_conditions(&conditions));
    }
    ConditionSummary::from_stored(text).map_err(failed)
}

/// Reads an outcome: its sequence, 1 if it is a success, its time, and the message of a failure.
fn read_outcome(text: &str) -> Result<ReportedOutcome, StoreError> {
    let mut words = text.splitn(4, ' ');
    let mut number = || words.next().unwrap_or_default().parse::<i64>().map_err(failed);
    let (sequence, succeeded, reported_at) = (Sequence(number()?), number()? != 0, number()?);
    let message = words.next().filter(|message| !message.is_empty()).map(str::to_owned);
    let reported_at = Timestamp::from_microsecond(reported_at).ok();
    Ok(ReportedOutcome { sequence, succeeded, reported_at, message })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::records::ReportedPhase;

    #[test]
    fn a_report_is_a_summary_or_the_conditions_from_before_it_was_stored() {
        let conditions = r#"[{"type": "Applied", "status": "False", "reason": "Failed", "message": "no room",
            "lastTransitionTime": "1970-01-01T00:00:00Z"}]"#;
        let expected = ConditionSummary {
            phase: ReportedPhase::Failed,
            since: Some(Timestamp::UNIX_EPOCH),
            reason: Some("Failed".to_owned()),
            message: Some("no room".to_owned()),
        };
        assert_eq!(read_report(conditions), Ok(expected.clone()));
        assert_eq!(read_report(&expected.to_stored()), Ok(expected));
    }

    #[test]
    fn an_outcome_has_the_message_of_a_failure() {
        let failed = read_outcome("7 0 1000000 no room for it").unwrap();
        assert_eq!((failed.sequence, failed.succeeded), (Sequence(7), false));
        assert_eq!(failed.message.as_deref(), Some("no room for it"));
        assert_eq!(read_outcome("7 1 0 ").unwrap().message, None);
    }
}
