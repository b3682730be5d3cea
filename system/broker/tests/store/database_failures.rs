//! Failures of a PostgreSQL server, of the network to it, and of another broker on it.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use futures_util::future::join_all;
use http::{Request, StatusCode};
use jiff::Timestamp;
use sindri_broker::{Broker, Heartbeat, ListScope, PostgresStore, Store, StoreError, router, serve};
use sindri_model::wire::{HeartbeatReport, StackLabel};
use sindri_model::{Clock, Epoch, LinkId, Pak, Sequence, StackId};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tower::ServiceExt;

use crate::proxy::Proxy;
use crate::support::{World, entropy, fresh_schema, revision, run_sql, write_context};

/// Bound for which a replica that has stopped may hold up the others.
const HELD_MAX: Duration = Duration::from_secs(6);
/// Number of agents of a large fleet.
const FLEET: usize = 4_000;
/// Time in which a replacement of the database is handled.
const HANDLED_MAX: Duration = Duration::from_secs(8);

/// Returns a world with a stack, and its URL.
async fn world_with_stack() -> Option<(World, StackId, String)> {
    let world = World::postgres().await?;
    let [_] = world.add_agents().await;
    let (stack, url) = (world.add_stack("web").await, world.url.clone().unwrap());
    Some((world, stack, url))
}

#[tokio::test]
async fn a_replica_that_freezes_in_a_transaction_holds_up_others_for_a_bounded_time() {
    let Some((world, stack, url)) = world_with_stack().await else { return };
    let proxy = Proxy::start(&url).await;
    let frozen = PostgresStore::open(&proxy.url, 2).await.unwrap();
    proxy.freeze_before_commit();
    let mut replica = JoinSet::new();
    replica.spawn(async move { frozen.append_revision(write_context(), revision(stack, "a: 1")).await });
    proxy.await_frozen().await;
    let started = Instant::now();
    let submitted = world.store.append_revision(write_context(), revision(stack, "a: 2")).await;
    assert!(submitted.is_ok(), "{submitted:?}");
    assert!(started.elapsed() < HELD_MAX, "{:?}", started.elapsed());
    assert_eq!(world.store.list_revisions(stack, crate::support::ALL).await.unwrap().len(), 1, "one was rolled back");
}

#[tokio::test]
async fn a_broker_that_cannot_write_is_not_ready_and_becomes_ready_again() {
    let Some((_world, _, url)) = world_with_stack().await else { return };
    let broker = start_broker(&url).await;
    let api = router(broker);
    assert_eq!(readiness(&api).await, StatusCode::OK);
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(connection);
    client.batch_execute("BEGIN; UPDATE meta SET value = value WHERE name = 'tick'").await.unwrap();
    wait_until(|| async { readiness(&api).await == StatusCode::SERVICE_UNAVAILABLE }).await;
    client.batch_execute("ROLLBACK").await.unwrap();
    wait_until(|| async { readiness(&api).await == StatusCode::OK }).await;
}

#[tokio::test]
async fn a_connection_that_swallows_its_requests_costs_one_call() {
    let Some((_world, stack, url)) = world_with_stack().await else { return };
    let proxy = Proxy::start(&url).await;
    let store = PostgresStore::open(&proxy.url, 4).await.unwrap();
    let submit = || store.append_revision(write_context(), revision(stack, "a: 1"));
    join_all((0..16).map(|_| store.get_stack(stack))).await;
    submit().await.unwrap();
    proxy.swallow_open_connections();
    let (submitted, read) = tokio::join!(submit(), store.get_stack(stack));
    assert_eq!((submitted.err(), read.err()), (Some(StoreError::Unavailable), Some(StoreError::Unavailable)));
    let started = Instant::now();
    submit().await.unwrap();
    for _ in 0..8 {
        store.get_stack(stack).await.unwrap();
    }
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

#[tokio::test]
async fn lost_commits_begin_a_new_epoch_while_the_broker_runs_and_no_sequence_is_issued_twice() {
    let Some((world, stack, url)) = world_with_stack().await else { return };
    let broker = start_broker(&url).await;
    let pak = Pak::generate(&entropy());
    broker.create_admin_key(&pak).await.unwrap();
    let api = router(broker.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut serving = JoinSet::new();
    serving.spawn(serve(listener, broker, std::future::pending()));
    let mut issued = Vec::new();
    for _ in 0..3 {
        issued.push(submit_over_http(&api, &pak, stack).await.unwrap());
    }
    // A promoted standby, or a restored backup, lacks the last two commits.
    let lost = format!(
        "BEGIN; UPDATE stacks SET newest = {0}; DELETE FROM revisions WHERE sequence > {0};
         UPDATE meta SET value = {0} WHERE name = 'tick'; COMMIT",
        issued[0]
    );
    run_sql(&url, &lost).await;
    let started = Instant::now();
    let next = loop {
        match submit_over_http(&api, &pak, stack).await {
            Some(sequence) => break sequence,
            None => sleep(Duration::from_millis(50)).await,
        }
        assert!(started.elapsed() < HANDLED_MAX, "no submission succeeds");
    };
    assert_eq!(next.epoch(), Epoch(2), "{issued:?}");
    assert_eq!(world.store.get_position().await.unwrap().epoch, Epoch(2));
}

#[tokio::test]
async fn a_failover_to_another_server_begins_a_new_epoch_before_anything_is_written_there() {
    let Some(url) = fresh_schema().await else { return };
    let schema = url.rsplit("%3D").next().unwrap().to_owned();
    let server = format!(
        "CREATE TABLE {schema}.server (id BIGINT); INSERT INTO {schema}.server VALUES (1);
         CREATE FUNCTION {schema}.pg_control_system() RETURNS TABLE (system_identifier BIGINT)
           LANGUAGE sql AS 'SELECT id FROM {schema}.server'"
    );
    run_sql(&url, &server).await;
    // The schema before the system's: its function is the one that names the server.
    let url = format!("{url}%2Cpg_catalog&application_name={schema}");
    let store = PostgresStore::open(&url, 4).await.unwrap();
    let evidence = sindri_broker::RestoreEvidence { origin: store.origin(), ..Default::default() };
    assert!(evidence.origin.as_ref().is_some_and(|origin| origin.starts_with("1/")), "{evidence:?}");
    assert_eq!(store.record_origin(write_context(), evidence).await.unwrap(), None);
    assert!(timeout(Duration::from_millis(100), store.await_restore()).await.is_err());
    let failover = format!(
        "UPDATE {schema}.server SET id = 2;
         SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{schema}' AND pid <> pg_backend_pid()"
    );
    run_sql(&url, &failover).await;
    let evidence = loop {
        // The first calls find closed connections; each later one is refused until the replacement is handled.
        assert!(store.check_writable().await.is_err());
        if let Ok(evidence) = timeout(Duration::from_millis(100), store.await_restore()).await {
            break evidence.unwrap();
        }
    };
    let begun = store.record_origin(write_context(), evidence.clone()).await.unwrap();
    assert_eq!(begun.map(|position| position.epoch), Some(Epoch(2)));
    store.confirm_restore(&evidence);
    store.check_writable().await.unwrap();
}

#[tokio::test]
async fn a_large_fleet_is_written_in_time_with_a_database_two_milliseconds_away() {
    let Some((world, _, url)) = world_with_stack().await else { return };
    let fleet = format!(
        "INSERT INTO agents (id, created_at, updated_at, name, cluster_name, active)
           SELECT 'a0000000-0000-4000-8000-' || lpad(number::text, 12, '0'), 0, 0, 'fleet-' || number, 'c', 1
           FROM generate_series(1, {FLEET}) AS number;
         INSERT INTO registrations (id, agent_id, generator_id, registered_at)
           SELECT 'r' || id, id, '{0}', 0 FROM agents WHERE cluster_name = 'c';
         INSERT INTO agent_labels (id, agent_id, label) SELECT 'l' || id, id, 'fleet' FROM agents WHERE cluster_name = 'c'",
        world.generator
    );
    run_sql(&url, &fleet).await;
    let proxy = Proxy::start(&url).await;
    let store = PostgresStore::open(&proxy.url, 2).await.unwrap();
    proxy.delay(Duration::from_millis(1));
    let (agents, stack) = (store.list_agents(crate::support::ALL).await.unwrap(), world.add_stack("everywhere").await);
    world.submit(stack).await;
    let received_at = crate::support::at(60);
    let report = HeartbeatReport { k8s_reachable: Some(true), k8s_api_latency_ms: Some(1) };
    let heartbeats = agents.iter().map(|agent| (agent.id, Heartbeat { received_at, report: report.clone() }));
    let started = Instant::now();
    store.record_heartbeats(heartbeats.collect()).await.unwrap();
    let label = StackLabel { id: LinkId::generate(&entropy()), stack_id: stack, label: "fleet".to_owned() };
    store.add_stack_label(write_context(), label).await.unwrap();
    // Every agent polls, so that taking the stack from it needs a removal.
    run_sql(&url, "UPDATE assignments SET received = 1").await;
    store.remove_stack_label(write_context(), stack, "fleet".to_owned()).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
    let agent = agents.iter().find(|agent| agent.cluster_name == "c").unwrap().id;
    assert_eq!(world.store.get_agent(agent).await.unwrap().last_heartbeat, Some(received_at));
    let state = world.store.get_target_state(agent).await.unwrap();
    assert_eq!(state.revisions.len(), 1);
    assert!(state.revisions[0].revision.is_deletion_marker);
}

#[tokio::test]
async fn a_generator_with_many_stacks_is_deleted_in_time_with_a_database_two_milliseconds_away() {
    let Some((world, _, url)) = world_with_stack().await else { return };
    let [agent] = [world.add_agent("reader", &[]).await.unwrap()];
    let stacks = format!(
        "INSERT INTO stacks (id, created_at, updated_at, name, generator_id)
           SELECT 'b0000000-0000-4000-8000-' || lpad(number::text, 12, '0'), 0, 0, 'stack-' || number, '{0}'
           FROM generate_series(1, 2000) AS number;
         INSERT INTO assignments (agent_id, stack_id, wanted, received)
           SELECT '{agent}', id, 1, 1 FROM stacks WHERE name LIKE 'stack-%'",
        world.generator
    );
    run_sql(&url, &stacks).await;
    let proxy = Proxy::start(&url).await;
    let store = PostgresStore::open(&proxy.url, 2).await.unwrap();
    proxy.delay(Duration::from_millis(1));
    let started = Instant::now();
    store.delete_generator(write_context(), world.generator).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    assert_eq!(world.store.list_stacks(ListScope::All, crate::support::ALL).await.unwrap(), []);
    let removals = world.store.get_target_state(agent).await.unwrap().revisions;
    let sequences: BTreeSet<_> = removals.iter().map(|target| target.revision.sequence_id).collect();
    assert_eq!((removals.len(), sequences.len()), (2_000, 2_000));
    assert!(removals.iter().all(|target| target.revision.is_deletion_marker));
}

async fn start_broker(url: &str) -> Broker {
    let store = PostgresStore::open(url, 4).await.unwrap();
    let clock = Clock::new(|| Timestamp::from_second(1_700_000_000).unwrap());
    Broker::start(store, clock, entropy()).await.unwrap()
}

async fn readiness(api: &Router) -> StatusCode {
    let request = Request::builder().uri("/readyz").body(Body::empty()).unwrap();
    api.clone().oneshot(request).await.unwrap().status()
}

/// Submits a revision; returns its sequence, or None if the broker is not able to accept it.
async fn submit_over_http(api: &Router, admin: &Pak, stack: StackId) -> Option<Sequence> {
    let request = Request::builder()
        .method("POST")
        .uri(format!("/api/v1/stacks/{stack}/deployment-objects"))
        .header("authorization", admin.reveal())
        .header("content-type", "application/yaml");
    let response = api.clone().oneshot(request.body(Body::from("a: 1")).unwrap()).await.unwrap();
    if response.status() != StatusCode::CREATED {
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        return None;
    }
    let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
    let revision: serde_json::Value = serde_json::from_slice(&body).unwrap();
    Some(Sequence(revision["sequence_id"].as_i64().unwrap()))
}

async fn wait_until<F: Future<Output = bool>>(condition: impl Fn() -> F) {
    let started = Instant::now();
    while !condition().await {
        assert!(started.elapsed() < HANDLED_MAX, "the condition does not become true");
        sleep(Duration::from_millis(100)).await;
    }
}
