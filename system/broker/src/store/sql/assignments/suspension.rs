//! Changes of the annotation that suspends a stack on the clusters of some agents.

use sindri_model::limits::ANNOTATION_VALUE_CHARS_MAX;
use sindri_model::policy::{PolicyValue, SUSPEND_ANNOTATION, Suspension};
use sindri_model::wire::{StackAnnotation, SuspensionChange};
use sindri_model::{LinkId, StackId};

use super::labels;
use crate::store::records::{StoreError, WriteContext};
use crate::store::sql::shared::counter;
use crate::store::sql::shared::session::{Session, fetch_one, single_column};
use crate::store::sql::shared::values::values;
use crate::store::sql::tables::stacks;

pub(crate) async fn change(
    session: &mut dyn Session,
    context: WriteContext,
    stack: StackId,
    SuspensionChange { suspend, resume }: SuspensionChange,
) -> Result<Suspension, StoreError> {
    // Before anything else: no other change comes between what is read and what is written back.
    counter::next_number(session).await?;
    stacks::get(session, stack).await?;
    let sql = "SELECT value FROM stack_annotations WHERE stack_id = ?1 AND key = ?2";
    let stored: Option<String> = fetch_one(session, sql, values![stack, SUSPEND_ANNOTATION], single_column).await?;
    let current = match &stored {
        Some(value) => parse(value)?,
        None => Suspension::Everywhere(false),
    };
    let changed = current.change(&suspend, &resume);
    let value = changed.to_value().map_err(StoreError::InvalidPolicy)?;
    if value.as_ref().is_some_and(|value| value.chars().count() > ANNOTATION_VALUE_CHARS_MAX) {
        let reason = format!("the names of the agents must have at most {ANNOTATION_VALUE_CHARS_MAX} characters");
        return Err(StoreError::InvalidPolicy(reason));
    }
    let key = SUSPEND_ANNOTATION.to_owned();
    match value {
        Some(value) => {
            let id = LinkId::generate(&context.entropy);
            let annotation = StackAnnotation { id, stack_id: stack, key, value };
            labels::set_annotation_of_stack(session, context, annotation).await?;
        }
        None if stored.is_some() => labels::remove_annotation_from_stack(session, context, stack, key).await?,
        None => {}
    }
    Ok(changed)
}

fn parse(value: &str) -> Result<Suspension, StoreError> {
    match PolicyValue::parse(SUSPEND_ANNOTATION, value).map_err(StoreError::InvalidPolicy)? {
        Some(PolicyValue::Suspend(suspension)) => Ok(suspension),
        _ => Err(StoreError::InvalidPolicy(format!("{SUSPEND_ANNOTATION} has the value {value:?}"))),
    }
}
