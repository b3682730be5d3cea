//! Operators and CI of a random world: submissions, targets, policies, approvals, agents.

use sindri_model::policy::{
    BRAKE_ANNOTATION, BRAKE_OBJECTS_ANNOTATION, DRIFT_ANNOTATION, REMOVAL_ANNOTATION, SUSPEND_ANNOTATION,
};

use super::pools::{choose, choose_weighted};
use super::random_stack::RandomStack;
use crate::rng::SeededRng;
use crate::scenario::{Activation, AgentRef, LabelTarget, StackAnnotation, StackRef, StackTarget, Step, Submit};

#[derive(Clone, Copy)]
enum Operation {
    Submit,
    Delete,
    Target,
    Untarget,
    Label,
    Unlabel,
    Annotate,
    Approve,
    Reject,
    Deactivate,
    Activate,
    RecreateAgent,
}

const WEIGHTS: [(u64, Operation); 12] = [
    (40, Operation::Submit),
    (6, Operation::Delete),
    (8, Operation::Target),
    (8, Operation::Untarget),
    (2, Operation::Label),
    (2, Operation::Unlabel),
    (6, Operation::Annotate),
    (6, Operation::Approve),
    (3, Operation::Reject),
    (2, Operation::Deactivate),
    (4, Operation::Activate),
    (1, Operation::RecreateAgent),
];

/// Policies with the values that operators give them; an empty value removes the annotation.
const POLICIES: [(&str, &[&str]); 5] = [
    (DRIFT_ANNOTATION, &["correct", "detect", "off", ""]),
    (BRAKE_ANNOTATION, &["on", "off", ""]),
    (BRAKE_OBJECTS_ANNOTATION, &["0", "1", "5", ""]),
    (SUSPEND_ANNOTATION, &["*", ""]),
    (REMOVAL_ANNOTATION, &["release", "delete", ""]),
];

/// Makes the steps of one operation on a stack.
pub fn operate(rng: &mut SeededRng, stack: &mut RandomStack, agents: &[String]) -> Vec<Step> {
    let name = stack.name.to_owned();
    let agent = choose(rng, agents).clone();
    let operation = if stack.is_submitted() { choose_weighted(rng, &WEIGHTS) } else { Operation::Submit };
    let target = StackTarget { stack: name.clone(), agent: agent.clone() };
    let label = LabelTarget { stack: name.clone(), agent: agent.clone(), label: format!("runs-{name}") };
    let step = match operation {
        Operation::Submit => submit(rng, stack, agents),
        Operation::Delete => Step::Delete(StackRef { stack: name }),
        Operation::Target => Step::Target(target),
        Operation::Untarget => Step::Untarget(target),
        Operation::Label => Step::Label(label),
        Operation::Unlabel => Step::Unlabel(label),
        Operation::Annotate => annotate(rng, name),
        Operation::Approve => Step::Approve(StackRef { stack: name }),
        Operation::Reject => Step::Reject(StackRef { stack: name }),
        Operation::Deactivate => Step::Activate(Activation { agent, active: false }),
        Operation::Activate => Step::Activate(Activation { agent, active: true }),
        Operation::RecreateAgent => {
            return vec![Step::DeleteAgent(AgentRef { agent: agent.clone() }), Step::CreateAgent(AgentRef { agent })];
        }
    };
    vec![step]
}

fn submit(rng: &mut SeededRng, stack: &mut RandomStack, agents: &[String]) -> Step {
    let is_new = !stack.is_submitted();
    let yaml = Some(stack.next_text(rng));
    let to = (is_new && rng.chance(1, 3)).then(|| vec![choose(rng, agents).clone()]);
    Step::Submit(Submit { stack: stack.name.to_owned(), bundle: None, yaml, to })
}

/// Makes the step that submits the next revision of a stack.
pub fn submit_next(rng: &mut SeededRng, stack: &mut RandomStack) -> Step {
    let text = stack.next_text(rng);
    submit_text(stack, text)
}

/// Makes the step that submits a text.
pub fn submit_text(stack: &RandomStack, text: String) -> Step {
    Step::Submit(Submit { stack: stack.name.to_owned(), bundle: None, yaml: Some(text), to: None })
}

/// Makes the step that submits a revision without an object; none if it is the only one.
pub fn submit_without(stack: &mut RandomStack, object: &str) -> Option<Step> {
    let text = stack.drop_object(object)?;
    Some(submit_text(stack, text))
}

fn annotate(rng: &mut SeededRng, stack: String) -> Step {
    let (key, values) = *choose(rng, &POLICIES);
    let value = Some((*choose(rng, values)).to_owned()).filter(|value| !value.is_empty());
    Step::Annotate(StackAnnotation { stack, key: key.to_owned(), value })
}
