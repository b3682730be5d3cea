//! `sindri agent label`, `unlabel`, `annotate` and `unannotate`.

use sindri_model::wire::Agent;

use crate::commands::labels::{AnnotationKeys, Annotations, Labels, RemovedLabels, accept_existing, require_existing};
use crate::commands::losses::{find_stacks, join_names};
use crate::confirm::Confirmation;
use crate::failure::Failure;
use crate::names;
use crate::session::Session;

pub(crate) async fn label(session: &Session, arguments: &Labels) -> Result<(), Failure> {
    let agent = names::find_agent(&session.client, &arguments.name).await?;
    for label in &arguments.labels {
        accept_existing(session.client.label_agent(agent.id, label).await)?;
    }
    session.output.print_change(&agent, &format!("agent {} is labeled {}", agent.name, arguments.labels.join(", ")))
}

pub(crate) async fn unlabel(session: &Session, arguments: &RemovedLabels) -> Result<(), Failure> {
    let RemovedLabels { labels: Labels { name, labels }, confirmation } = arguments;
    let agent = names::find_agent(&session.client, name).await?;
    let known = session.client.list_agent_labels(agent.id).await?;
    if let Some(missing) = labels.iter().find(|removed| known.iter().all(|known| known.label != **removed)) {
        return Err(Failure::Usage(format!("agent {} has no label {missing}; nothing was changed", agent.name)));
    }
    let joined = labels.join(", ");
    confirm_unlabel(session, &agent, labels, &joined, confirmation).await?;
    for label in labels {
        let removed = session.client.unlabel_agent(agent.id, label).await;
        require_existing(removed, || format!("agent {} has no label {label}", agent.name))?;
    }
    let sentence =
        format!("agent {} is no longer labeled {joined}, and removes the stacks that it had by it", agent.name);
    session.output.print_change(&agent, &sentence)
}

async fn confirm_unlabel(
    session: &Session,
    agent: &Agent,
    labels: &[String],
    joined: &str,
    confirmation: &Confirmation,
) -> Result<(), Failure> {
    if !confirmation.is_asked() {
        return Ok(());
    }
    let lost = find_stacks(session, agent, async |stack| {
        Ok(session.client.list_stack_labels(stack.id).await?.iter().any(|known| labels.contains(&known.label)))
    });
    let lost = lost.await?;
    if lost.is_empty() {
        return Ok(());
    }
    let (name, lost) = (&agent.name, join_names(&lost));
    confirmation
        .ask(session, &format!("Remove {joined} from agent {name}? It removes the stacks that it has by it: {lost}."))
}

pub(crate) async fn annotate(session: &Session, arguments: &Annotations) -> Result<(), Failure> {
    let Annotations { name, annotations, confirmation } = arguments;
    let agent = names::find_agent(&session.client, name).await?;
    let is_replaced = |key: &str, value: &str| annotations.iter().any(|(new, to)| new == key && to != value);
    confirm_loss(session, &agent, is_replaced, confirmation).await?;
    for (key, value) in annotations {
        session.client.set_agent_annotation(agent.id, key, value).await?;
    }
    session.output.print_change(&agent, &format!("agent {} is annotated", agent.name))
}

pub(crate) async fn unannotate(session: &Session, arguments: &AnnotationKeys) -> Result<(), Failure> {
    let AnnotationKeys { name, keys, confirmation } = arguments;
    let agent = names::find_agent(&session.client, name).await?;
    let known = session.client.list_agent_annotations(agent.id).await?;
    if let Some(missing) = keys.iter().find(|removed| known.iter().all(|known| known.key != **removed)) {
        return Err(Failure::Usage(format!("agent {} has no annotation {missing}; nothing was changed", agent.name)));
    }
    confirm_loss(session, &agent, |key, _| keys.iter().any(|removed| removed == key), confirmation).await?;
    for key in keys {
        let removed = session.client.remove_agent_annotation(agent.id, key).await;
        require_existing(removed, || format!("agent {} has no annotation {key}", agent.name))?;
    }
    let keys = keys.join(", ");
    session.output.print_change(&agent, &format!("agent {} is no longer annotated with {keys}", agent.name))
}

/// Asks before annotations of an agent end by which it has stacks.
async fn confirm_loss(
    session: &Session,
    agent: &Agent,
    is_ending: impl Fn(&str, &str) -> bool,
    confirmation: &Confirmation,
) -> Result<(), Failure> {
    if !confirmation.is_asked() {
        return Ok(());
    }
    let mut ending = session.client.list_agent_annotations(agent.id).await?;
    ending.retain(|annotation| is_ending(&annotation.key, &annotation.value));
    if ending.is_empty() {
        return Ok(());
    }
    let lost = find_stacks(session, agent, async |stack| {
        let known = session.client.list_stack_annotations(stack.id).await?;
        Ok(known.iter().any(|known| ending.iter().any(|old| (&old.key, &old.value) == (&known.key, &known.value))))
    });
    let lost = lost.await?;
    if lost.is_empty() {
        return Ok(());
    }
    let (name, lost) = (&agent.name, join_names(&lost));
    confirmation.ask(
        session,
        &format!("Change the annotations of agent {name}? It removes the stacks that it has by them: {lost}."),
    )
}
