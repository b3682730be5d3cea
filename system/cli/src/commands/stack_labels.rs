//! `sindri stack label`, `unlabel`, `annotate` and `unannotate`.

use sindri_model::StackId;

use crate::commands::labels::{AnnotationKeys, Annotations, Labels, accept_existing, accept_missing, require_existing};
use crate::failure::Failure;
use crate::names;
use crate::session::Session;

pub(crate) async fn label(session: &Session, arguments: &Labels) -> Result<(), Failure> {
    let stack = names::find_stack(&session.client, &arguments.name).await?;
    for label in &arguments.labels {
        accept_existing(session.client.label_stack(stack.id, label).await)?;
    }
    session.output.print_change(&stack, &format!("stack {} is labeled {}", stack.name, arguments.labels.join(", ")))
}

pub(crate) async fn unlabel(session: &Session, arguments: &Labels) -> Result<(), Failure> {
    let stack = names::find_stack(&session.client, &arguments.name).await?;
    for label in &arguments.labels {
        let removed = session.client.unlabel_stack(stack.id, label).await;
        require_existing(removed, || format!("stack {} has no label {label}", stack.name))?;
    }
    let labels = arguments.labels.join(", ");
    let sentence =
        format!("stack {} is no longer labeled {labels}; agents that had it by that label remove it", stack.name);
    session.output.print_change(&stack, &sentence)
}

pub(crate) async fn annotate(session: &Session, arguments: &Annotations) -> Result<(), Failure> {
    let stack = names::find_stack(&session.client, &arguments.name).await?;
    for (key, value) in &arguments.annotations {
        set_annotation(session, stack.id, key, value).await?;
    }
    session.output.print_change(&stack, &format!("stack {} is annotated", stack.name))
}

pub(crate) async fn unannotate(session: &Session, arguments: &AnnotationKeys) -> Result<(), Failure> {
    let stack = names::find_stack(&session.client, &arguments.name).await?;
    for key in &arguments.keys {
        let removed = session.client.remove_stack_annotation(stack.id, key).await;
        require_existing(removed, || format!("stack {} has no annotation {key}", stack.name))?;
    }
    let keys = arguments.keys.join(", ");
    session.output.print_change(&stack, &format!("stack {} is no longer annotated with {keys}", stack.name))
}

/// Adds an annotation, or replaces its value.
pub(crate) async fn set_annotation(session: &Session, stack: StackId, key: &str, value: &str) -> Result<(), Failure> {
    accept_missing(session.client.remove_stack_annotation(stack, key).await)?;
    session.client.annotate_stack(stack, key, value).await?;
    Ok(())
}
