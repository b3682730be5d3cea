//! Plans of proposed texts, by an agent that runs.

use std::time::Duration;

use serde_json::Value;
use sindri_model::ProposalId;
use sindri_model::wire::{PlanStatus, ProposedPlan};
use tokio::time::Instant;

use crate::inspect::Environment;
use crate::support::{BUNDLE, agent_of, in_time};

/// Polls of the agents, which wait for a proposal.
const INTERVAL: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(10);

/// Waits for the plan of the only agent.
async fn await_plan(env: &Environment, id: ProposalId) -> ProposedPlan {
    loop {
        let plan = env.admin.get_proposal(env.stack, id).await.unwrap().agents.remove(0);
        if plan.plan.is_some() {
            return plan;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Runs an agent while the test proposes texts, and returns their plans.
async fn plan_all(env: &Environment, texts: &[&str]) -> Vec<ProposedPlan> {
    let agent = agent_of(env.broker, env.api, &env.key, INTERVAL);
    let (done, is_done) = tokio::sync::oneshot::channel::<()>();
    let propose = async {
        let mut plans = Vec::new();
        for text in texts {
            let created = env.admin.create_proposal(env.stack, text).await.unwrap();
            plans.push(await_plan(env, created.id).await);
        }
        done.send(()).unwrap();
        plans
    };
    let (ended, plans) = in_time(async { tokio::join!(agent.run(async { drop(is_done.await) }), propose) }).await;
    ended.unwrap();
    plans
}

#[tokio::test]
async fn a_running_agent_plans_proposals_at_once_and_writes_nothing() {
    let env = Environment::new().await;
    env.apply().await;
    let before = env.resource_versions().await;
    let started = Instant::now();
    let secret =
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: default}\nstringData: {password: hunter2}\n";
    let texts = [
        format!("# A comment.\n{BUNDLE}"),
        BUNDLE.replace("x: '1'", "x: '2'"),
        format!("{BUNDLE}---\n{secret}"),
        BUNDLE.replace("kind: ConfigMap", "kind: Nothing"),
        BUNDLE.replace("metadata: {name: a", "metadata: {name: A_b"),
        format!("{BUNDLE}---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: sindri-system}}\n"),
    ];
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let plans = plan_all(&env, &texts).await;
    assert!(started.elapsed() < INTERVAL, "each proposal ended the wait of a poll");
    let describe = |index: usize| {
        let plan: &ProposedPlan = &plans[index];
        (plan.status, plan.changes, plan.plan.clone().unwrap_or_default())
    };
    let (status, changes, text) = describe(0);
    assert_eq!((status, changes, text.as_str()), (PlanStatus::Planned, Some(false), "= 1 objects are unchanged\n"));
    let (status, changes, text) = describe(1);
    assert_eq!((status, changes), (PlanStatus::Planned, Some(true)));
    assert_eq!(text, "~ ConfigMap default/a\n    data.x: \"1\" → \"2\"\n");
    let (_, changes, text) = describe(2);
    assert!(changes == Some(true) && text.contains("+ Secret default/s  (new)\n"), "{text}");
    assert!(text.contains("data.password: (hidden) → (hidden)"), "{text}");
    assert!(!text.contains("hunter2") && !text.contains("aHVudGVyMg"), "{text}");
    for (index, part) in [
        (3, "! document 1: Nothing default/a: the cluster does not serve this kind in v1\n"),
        (4, "    ! validate ConfigMap default/A_b: 422 Invalid: "),
        (5, "namespace sindri-system is closed to stacks\n"),
    ] {
        let (status, changes, text) = describe(index);
        assert!((status, changes) == (PlanStatus::Failed, None) && text.contains(part), "{index}: {text}");
    }
    assert_eq!(env.resource_versions().await, before);
    let secrets = env.call("GET", "/api/v1/namespaces/default/secrets", Value::Null).await;
    assert_eq!(secrets["items"].as_array().map(Vec::len), Some(0), "{secrets}");
}

#[tokio::test]
async fn an_agent_that_starts_plans_what_was_proposed_before() {
    let env = Environment::new().await;
    let first = env.admin.create_proposal(env.stack, &BUNDLE.replace("name: a", "name: b")).await.unwrap();
    let plans = plan_all(&env, &[BUNDLE]).await;
    assert_eq!(plans[0].status, PlanStatus::Planned);
    let read = env.admin.get_proposal(env.stack, first.id).await.unwrap();
    let text = read.agents[0].plan.clone().unwrap_or_default();
    assert!(text.contains("+ ConfigMap default/b  (new)"), "{text}");
}
