//! `sindri history`: the revisions of a stack, newest first.

use clap::Args;
use serde::Serialize;
use sindri_model::wire::RevisionSummary;

use crate::failure::Failure;
use crate::names;
use crate::output::{Cell, Column, Resource};
use crate::session::Session;

/// Characters of a checksum in a table.
const CHECKSUM_CHARS: usize = 12;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Name or id of the stack.
    stack: String,
    /// Largest number of revisions.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    limit: u16,
}

/// A revision in a history.
#[derive(Serialize)]
#[serde(transparent)]
struct HistoryRow(RevisionSummary);

impl Resource for HistoryRow {
    const KIND: &'static str = "revision";
    const NONE: &'static str = "the stack has no revision yet";

    fn name(&self) -> String {
        self.0.number.to_string()
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("REVISION", |row: &Self| Cell::text(row.0.number)),
            Column::new("SUBMITTED", |row: &Self| Cell::time(row.0.submitted_at)),
            Column::new("SEQUENCE", |row: &Self| Cell::text(row.0.sequence_id)),
            Column::new("BYTES", |row: &Self| Cell::optional(row.0.bytes)),
            Column::new("CHECKSUM", |row: &Self| {
                Cell::text(row.0.yaml_checksum.as_str().chars().take(CHECKSUM_CHARS).collect::<String>())
            }),
            Column::new("CONTENT", |row: &Self| {
                Cell::text(if row.0.is_deletion_marker { "deletion marker" } else { "bundle" })
            }),
            Column::wide("ID", |row: &Self| Cell::text(row.0.id)),
        ]
    }
}

pub(crate) async fn run(session: &Session, arguments: &Arguments) -> Result<(), Failure> {
    let stack = names::find_stack(&session.client, &arguments.stack).await?;
    let revisions = session.client.list_history(stack.id, usize::from(arguments.limit)).await?;
    session.output.print_list(&revisions.into_iter().map(HistoryRow).collect::<Vec<_>>())
}
