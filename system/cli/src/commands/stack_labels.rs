//! `sindri stack label`, `unlabel`, `annotate` and `unannotate`.

use sindri_model::wire::Stack;

use crate::commands::labels::{
    AnnotationKeys, Annotations, Labels, RemovedLabels, accept_existing, accept_forbidden, require_existing,
};
use crate::commands::losses::{find_clusters, join_names};
use crate::confirm::Confirmation;
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

pub(crate) async fn unlabel(session: &Session, arguments: &RemovedLabels) -> Result<(), Failure> {
    let RemovedLabels { labels: Labels { name, labels }, confirmation } = arguments;
    let stack = names::find_stack(&session.client, name).await?;
    let known = session.client.list_stack_labels(stack.id).await?;
    if let Some(missing) = labels.iter().find(|removed| known.iter().all(|known| known.label != **removed)) {
        return Err(Failure::Usage(format!("stack {} has no label {missing}; nothing was changed", stack.name)));
    }
    let joined = labels.join(", ");
    confirm_unlabel(session, &stack, labels, &joined, confirmation).await?;
    for label in labels {
        let removed = session.client.unlabel_stack(stack.id, label).await;
        require_existing(removed, || format!("stack {} has no label {label}", stack.name))?;
    }
    let sentence =
        format!("stack {} is no longer labeled {joined}; agents that had it by that label remove it", stack.name);
    session.output.print_change(&stack, &sentence)
}

async fn confirm_unlabel(
    session: &Session,
    stack: &Stack,
    labels: &[String],
    joined: &str,
    confirmation: &Confirmation,
) -> Result<(), Failure> {
    if !confirmation.is_asked() {
        return Ok(());
    }
    let lost = find_clusters(session, stack, async |agent| {
        let known = accept_forbidden(session.client.list_agent_labels(agent).await)?;
        Ok(known.is_none_or(|known| known.iter().any(|known| labels.contains(&known.label))))
    });
    let lost = lost.await?;
    if lost.is_empty() {
        return Ok(());
    }
    let (name, lost) = (&stack.name, join_names(&lost));
    confirmation.ask(session, &format!("Remove {joined} from stack {name}? Its objects are removed from {lost}."))
}

pub(crate) async fn annotate(session: &Session, arguments: &Annotations) -> Result<(), Failure> {
    let Annotations { name, annotations, confirmation } = arguments;
    let stack = names::find_stack(&session.client, name).await?;
    let is_replaced = |key: &str, value: &str| annotations.iter().any(|(new, to)| new == key && to != value);
    confirm_loss(session, &stack, is_replaced, confirmation).await?;
    for (key, value) in annotations {
        session.client.set_stack_annotation(stack.id, key, value).await?;
    }
    session.output.print_change(&stack, &format!("stack {} is annotated", stack.name))
}

pub(crate) async fn unannotate(session: &Session, arguments: &AnnotationKeys) -> Result<(), Failure> {
    let AnnotationKeys { name, keys, confirmation } = arguments;
    let stack = names::find_stack(&session.client, name).await?;
    let known = session.client.list_stack_annotations(stack.id).await?;
    if let Some(missing) = keys.iter().find(|removed| known.iter().all(|known| known.key != **removed)) {
        return Err(Failure::Usage(format!("stack {} has no annotation {missing}; nothing was changed", stack.name)));
    }
    confirm_loss(session, &stack, |key, _| keys.iter().any(|removed| removed == key), confirmation).await?;
    for key in keys {
        let removed = session.client.remove_stack_annotation(stack.id, key).await;
        require_existing(removed, || format!("stack {} has no annotation {key}", stack.name))?;
    }
    let keys = keys.join(", ");
    session.output.print_change(&stack, &format!("stack {} is no longer annotated with {keys}", stack.name))
}

/// Asks before annotations of a stack end by which clusters have it.
async fn confirm_loss(
    session: &Session,
    stack: &Stack,
    is_ending: impl Fn(&str, &str) -> bool,
    confirmation: &Confirmation,
) -> Result<(), Failure> {
    if !confirmation.is_asked() {
        return Ok(());
    }
    let mut ending = session.client.list_stack_annotations(stack.id).await?;
    ending.retain(|annotation| is_ending(&annotation.key, &annotation.value));
    // Policies assign nothing, unless an agent has the same annotation.
    if ending.is_empty() {
        return Ok(());
    }
    let lost = find_clusters(session, stack, async |agent| {
        let known = accept_forbidden(session.client.list_agent_annotations(agent).await)?;
        let is_ending = |key: &str, value: &str| ending.iter().any(|old| (&*old.key, &*old.value) == (key, value));
        Ok(known.is_none_or(|known| known.iter().any(|known| is_ending(&known.key, &known.value))))
    });
    let lost = lost.await?;
    if lost.is_empty() {
        return Ok(());
    }
    let (name, lost) = (&stack.name, join_names(&lost));
    confirmation.ask(session, &format!("Change the annotations of stack {name}? Its objects are removed from {lost}."))
}
