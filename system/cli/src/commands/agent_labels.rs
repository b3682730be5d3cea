//! `sindri agent label`, `unlabel`, `annotate` and `unannotate`.

use crate::commands::labels::{AnnotationKeys, Annotations, Labels, accept_existing, accept_missing, require_existing};
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

pub(crate) async fn unlabel(session: &Session, arguments: &Labels) -> Result<(), Failure> {
    let agent = names::find_agent(&session.client, &arguments.name).await?;
    for label in &arguments.labels {
        let removed = session.client.unlabel_agent(agent.id, label).await;
        require_existing(removed, || format!("agent {} has no label {label}", agent.name))?;
    }
    let labels = arguments.labels.join(", ");
    let sentence =
        format!("agent {} is no longer labeled {labels}, and removes the stacks that it had by it", agent.name);
    session.output.print_change(&agent, &sentence)
}

pub(crate) async fn annotate(session: &Session, arguments: &Annotations) -> Result<(), Failure> {
    let agent = names::find_agent(&session.client, &arguments.name).await?;
    for (key, value) in &arguments.annotations {
        accept_missing(session.client.remove_agent_annotation(agent.id, key).await)?;
        session.client.annotate_agent(agent.id, key, value).await?;
    }
    session.output.print_change(&agent, &format!("agent {} is annotated", agent.name))
}

pub(crate) async fn unannotate(session: &Session, arguments: &AnnotationKeys) -> Result<(), Failure> {
    let agent = names::find_agent(&session.client, &arguments.name).await?;
    for key in &arguments.keys {
        let removed = session.client.remove_agent_annotation(agent.id, key).await;
        require_existing(removed, || format!("agent {} has no annotation {key}", agent.name))?;
    }
    let keys = arguments.keys.join(", ");
    session.output.print_change(&agent, &format!("agent {} is no longer annotated with {keys}", agent.name))
}
