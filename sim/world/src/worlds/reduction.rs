//! Smaller variants of a scenario.

use std::time::Duration;

use sindri_agent::Limits;

use crate::scenario::{BrokerRef, Fleet, Scenario, Span, Step, StepList};

/// Separator of the documents of a generated bundle.
const SEPARATOR: &str = "\n---\n";
/// Pauses that read well, longest first.
const ROUND_PAUSES: [Duration; 5] = [
    Duration::from_secs(60),
    Duration::from_secs(10),
    Duration::from_secs(1),
    Duration::from_millis(100),
    Duration::from_millis(10),
];

fn list_steps(scenario: &Scenario) -> Vec<Step> {
    scenario.steps.iter().map(|(_, step)| step.clone()).collect()
}

fn with_steps(scenario: &Scenario, steps: Vec<Step>) -> Scenario {
    Scenario { steps: StepList::from_steps(steps), ..scenario.clone() }
}

/// Makes one variant for each step that `change` has variants of.
fn change_each(scenario: &Scenario, change: impl Fn(&Step) -> Vec<Step>) -> Vec<Scenario> {
    let steps = list_steps(scenario);
    let with_changed = |index: usize, step: Step| {
        let mut steps = steps.clone();
        steps[index] = step;
        with_steps(scenario, steps)
    };
    let changed =
        steps.iter().enumerate().flat_map(|(index, step)| change(step).into_iter().map(move |step| (index, step)));
    changed.map(|(index, step)| with_changed(index, step)).collect()
}

/// Leaves out `size` steps from `start` on; `None` if there are none.
pub fn drop_chunk(scenario: &Scenario, start: usize, size: usize) -> Option<Scenario> {
    let steps = list_steps(scenario);
    if start >= steps.len() {
        return None;
    }
    let end = (start + size).min(steps.len());
    let kept = steps[..start].iter().chain(&steps[end..]).cloned().collect();
    Some(with_steps(scenario, kept))
}

/// Lists fleets with fewer hosts, with correct clocks, or with the limits of production.
pub fn list_smaller_fleets(scenario: &Scenario) -> Vec<Scenario> {
    let fleet = &scenario.fleet;
    let mut fleets = Vec::new();
    if fleet.brokers > 1 {
        fleets.push(Fleet { brokers: 1, ..fleet.clone() });
    }
    if fleet.replicas > 1 {
        fleets.push(Fleet { replicas: 1, ..fleet.clone() });
    }
    if fleet.clocks_ahead != Span::default() {
        fleets.push(Fleet { clocks_ahead: Span::default(), ..fleet.clone() });
    }
    let defaults = Limits::default();
    let larger = [
        Limits { inventory_chunk_entries: defaults.inventory_chunk_entries, ..fleet.limits },
        Limits { list_page: defaults.list_page, ..fleet.limits },
        Limits { requests_in_flight: defaults.requests_in_flight, ..fleet.limits },
        Limits { passes: defaults.passes, ..fleet.limits },
    ];
    let larger = larger.into_iter().filter(|limits| *limits != fleet.limits);
    fleets.extend(larger.map(|limits| Fleet { limits, ..fleet.clone() }));
    if fleet.agents.len() > 1 {
        for index in (0..fleet.agents.len()).rev() {
            let mut agents = fleet.agents.clone();
            agents.remove(index);
            fleets.push(Fleet { agents, ..fleet.clone() });
        }
    }
    let is_usable = |fleet: &Fleet| scenario.steps.iter().all(|(_, step)| uses_only(step, fleet));
    fleets.into_iter().filter(is_usable).map(|fleet| Scenario { fleet, ..scenario.clone() }).collect()
}

/// Returns true if a step names only hosts of the fleet.
fn uses_only(step: &Step, fleet: &Fleet) -> bool {
    let has_agent = |name: &String| fleet.agents.contains(name);
    match step {
        Step::Submit(submit) => submit.to.iter().flatten().all(has_agent),
        Step::Propose(propose) => propose.agent.iter().all(has_agent),
        Step::Target(target) | Step::Untarget(target) => has_agent(&target.agent),
        Step::Label(target) | Step::Unlabel(target) => has_agent(&target.agent),
        Step::Activate(activation) => has_agent(&activation.agent),
        Step::DeleteAgent(agent) | Step::CreateAgent(agent) => has_agent(&agent.agent),
        Step::SnapshotEtcd(cluster) | Step::RestoreEtcd(cluster) | Step::Heal(cluster) => has_agent(&cluster.cluster),
        Step::Partition(link) | Step::Repair(link) => link.between.iter().all(|host| fleet.has_host(host)),
        Step::Latency(latency) => latency.between.iter().all(|host| fleet.has_host(host)),
        Step::Kill(host) | Step::Restart(host) | Step::Pause(host) | Step::Continue(host) => fleet.has_host(host),
        Step::StallFor(BrokerRef { broker }) | Step::ResumeFor(BrokerRef { broker }) => fleet.has_host(broker),
        Step::Fail(fault) => has_agent(&fault.cluster),
        Step::Create(create) => has_agent(&create.cluster),
        Step::Edit(edit) => has_agent(&edit.cluster),
        Step::Remove(object) => has_agent(&object.cluster),
        _ => true,
    }
}

/// Lists variants with fewer documents in one bundle: half of them, or one less.
pub fn drop_documents(scenario: &Scenario) -> Vec<Scenario> {
    change_each(scenario, |step| {
        let Step::Submit(submit) = step else { return Vec::new() };
        let Some(yaml) = &submit.yaml else { return Vec::new() };
        let documents: Vec<&str> = yaml.split(SEPARATOR).collect();
        if documents.len() < 2 {
            return Vec::new();
        }
        let (first, second) = documents.split_at(documents.len() / 2);
        let without_one = (0..documents.len()).map(|dropped| {
            let kept = documents.iter().enumerate().filter(|(index, _)| *index != dropped);
            kept.map(|(_, document)| *document).collect::<Vec<_>>()
        });
        let kept = [first.to_vec(), second.to_vec()].into_iter().chain(without_one);
        kept.map(|kept| {
            let mut submit = submit.clone();
            submit.yaml = Some(kept.join(SEPARATOR));
            Step::Submit(submit)
        })
        .collect()
    })
}

/// Lists variants in which a fault is not limited to a number of requests.
pub fn drop_field_of_fault(scenario: &Scenario) -> Vec<Scenario> {
    change_each(scenario, |step| match step {
        Step::Fail(fault) if fault.times.is_some() => {
            let mut fault = fault.clone();
            fault.times = None;
            vec![Step::Fail(fault)]
        }
        _ => Vec::new(),
    })
}

/// Lists variants in which two pauses in a row are one.
pub fn merge_pauses(scenario: &Scenario) -> Vec<Scenario> {
    let steps = list_steps(scenario);
    let is_pair = |index: &usize| matches!((&steps[*index], &steps[index + 1]), (Step::Advance(_), Step::Advance(_)));
    let merged = (0..steps.len().saturating_sub(1)).filter(is_pair).map(|index| {
        let (Step::Advance(one), Step::Advance(other)) = (&steps[index], &steps[index + 1]) else {
            return scenario.clone();
        };
        let mut merged = steps.clone();
        merged[index] = Step::Advance(Span(one.0 + other.0));
        merged.remove(index + 1);
        with_steps(scenario, merged)
    });
    merged.collect()
}

/// Lists variants with rounder pauses.
pub fn round_pauses(scenario: &Scenario) -> Vec<Scenario> {
    change_each(scenario, |step| match step {
        Step::Advance(span) if !ROUND_PAUSES.contains(&span.0) => {
            ROUND_PAUSES.into_iter().map(|round| Step::Advance(Span(round))).collect()
        }
        _ => Vec::new(),
    })
}
