//! Probes of an agent: liveness, readiness with reasons, and metrics.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use sindri_agent::{Agent, Probes, Settings};
use sindri_model::wire::{AgentStatus, UpdateAgentRequest};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::support::{
    admin, agent, agent_of, broker, client, cluster, create_agent, declare, in_time, listener, serve,
};

/// Short, so that three intervals pass soon.
const INTERVAL: Duration = Duration::from_millis(100);
/// Pause between two requests.
const PAUSE: Duration = Duration::from_millis(10);

async fn send(address: SocketAddr, method: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(format!("{method} {path} HTTP/1.1\r\nhost: a\r\n\r\n").as_bytes()).await.unwrap();
    let mut response = String::new();
    in_time(stream.read_to_string(&mut response)).await.unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// Repeats a request until the response matches.
async fn wait_for(address: SocketAddr, path: &str, matches: impl Fn(u16, &str) -> bool) {
    in_time(async {
        loop {
            let (status, body) = send(address, "GET", path).await;
            if matches(status, &body) {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    })
    .await;
}

/// Returns the codes in a response of an agent that is not ready.
fn missing(body: &str) -> Value {
    let problem: Value = serde_json::from_str(body).unwrap();
    assert_eq!(problem["code"], "not_ready");
    problem["details"]["missing"].clone()
}

/// Starts an agent with its probes on a port; both end when the set is dropped.
async fn start(broker: SocketAddr, api: SocketAddr, key: &str) -> (JoinSet<()>, SocketAddr) {
    start_until(agent_of(broker, api, key, INTERVAL), std::future::pending()).await
}

/// Starts an agent that shuts down when `shutdown` ends.
async fn start_until(agent: Agent, shutdown: impl Future<Output = ()> + Send + 'static) -> (JoinSet<()>, SocketAddr) {
    let (metrics, readiness) = (agent.metrics.clone(), agent.readiness.clone());
    let probes = Probes { metrics, readiness, polling_interval: INTERVAL, agent: agent.settings.name.clone() };
    let (listener, address) = listener().await;
    let mut running = JoinSet::new();
    running.spawn(async move { agent.run(shutdown).await.unwrap() });
    running.spawn(async move { match probes.serve(listener).await {} });
    (running, address)
}

#[tokio::test]
async fn an_agent_is_ready_while_it_is_identified_polls_and_its_cluster_responds() {
    let (at_broker, broker_address) = listener().await;
    let (at_cluster, cluster_address) = listener().await;
    let api = cluster(at_cluster);
    let broker = broker().await;
    // On another port, because its own port is not served yet.
    let (elsewhere, elsewhere_address) = listener().await;
    let served = serve(&broker, elsewhere, None);
    let (key, _) = declare(&client(elsewhere_address, &admin().reveal())).await;
    drop(served);
    let (_agent, address) = start(broker_address, cluster_address, &key).await;
    let (status, body) = send(address, "GET", "/readyz").await;
    assert_eq!((status, missing(&body)), (503, json!(["identity", "poll", "cluster"])));
    assert!(body.contains("the broker has not identified this agent yet"), "{body}");
    assert_eq!(send(address, "GET", "/healthz").await, (200, "ok".to_owned()));

    let serving = serve(&broker, at_broker, None);
    wait_for(address, "/readyz", |status, body| (status, body) == (200, "ok")).await;

    drop(api);
    wait_for(address, "/readyz", |status, body| status == 503 && missing(body) == json!(["cluster"])).await;
    drop(serving);
    wait_for(address, "/readyz", |status, body| status == 503 && missing(body) == json!(["poll", "cluster"])).await;
    assert_eq!(send(address, "GET", "/healthz").await.0, 200, "it is alive all the same");
}

#[tokio::test]
async fn an_inactive_agent_is_ready_and_says_how_to_activate_it() {
    let (at_broker, broker_address) = listener().await;
    let (at_cluster, cluster_address) = listener().await;
    let (_api, _broker) = (cluster(at_cluster), serve(&broker().await, at_broker, None));
    let admin = client(broker_address, &admin().reveal());
    let (key, _) = declare(&admin).await;
    let agent = admin.find_agent("east", "demo").await.unwrap().id;
    let set_status = async |status: AgentStatus| {
        let update = UpdateAgentRequest { name: None, cluster_name: None, status: Some(status) };
        admin.update_agent(agent, &update).await.unwrap();
    };
    set_status(AgentStatus::Inactive).await;
    let (_agent, address) = start(broker_address, cluster_address, &key).await;
    wait_for(address, "/readyz", |status, body| {
        let problem: Value = serde_json::from_str(body).unwrap_or_default();
        status == 200
            && problem["code"] == "inactive"
            && problem["details"]["activate"] == "sindri agent activate east"
            && problem["message"].as_str().is_some_and(|message| message.contains("agent east is inactive"))
    })
    .await;
    set_status(AgentStatus::Active).await;
    wait_for(address, "/readyz", |status, body| (status, body) == (200, "ok")).await;
}

#[tokio::test]
async fn a_standby_is_ready_and_takes_over_and_an_agent_of_another_name_names_both() {
    let (at_broker, broker_address) = listener().await;
    let (at_cluster, cluster_address) = listener().await;
    let (_api, _broker) = (cluster(at_cluster), serve(&broker().await, at_broker, None));
    let admin = client(broker_address, &admin().reveal());
    let (key, _) = declare(&admin).await;
    let (_, west_key) = create_agent(&admin, "west", None).await;
    let shutdown = CancellationToken::new();
    let leader = agent_of(broker_address, cluster_address, &key, INTERVAL);
    let (_leader, leader_address) = start_until(leader, shutdown.clone().cancelled_owned()).await;
    wait_for(leader_address, "/metrics", |_, text| text.contains("\nsindri_agent_managed_objects 1\n")).await;

    let second = agent_of(broker_address, cluster_address, &key, INTERVAL);
    let second = Agent { identity: "east-2".to_owned(), ..second };
    let (_second, address) = start_until(second, std::future::pending()).await;
    wait_for(address, "/readyz", |status, body| status == 200 && body.contains("standby")).await;
    let (_, text) = send(address, "GET", "/metrics").await;
    assert!(!text.contains("sindri_agent_polls_total{result=\"new\"}"), "a standby does not poll: {text}");

    let other = agent_of(broker_address, cluster_address, &west_key, INTERVAL);
    let settings = Settings { name: "west".to_owned(), ..other.settings.clone() };
    let other = Agent { identity: "west".to_owned(), settings, ..other };
    let (other, other_address) = start_until(other, std::future::pending()).await;
    wait_for(other_address, "/readyz", |status, body| {
        status == 503
            && missing(body) == json!(["other_agent"])
            && body.contains("agent east holds the Lease")
            && body.contains("agent west waits")
    })
    .await;

    drop(other);
    // A rolling update ends the former process once its successor is ready.
    shutdown.cancel();
    wait_for(address, "/readyz", |status, body| (status, body) == (200, "ok")).await;
}

#[tokio::test]
async fn polls_passes_and_requests_are_counted() {
    let (at_broker, broker_address) = listener().await;
    let (at_cluster, cluster_address) = listener().await;
    let (_api, _broker) = (cluster(at_cluster), serve(&broker().await, at_broker, None));
    let (key, _) = declare(&client(broker_address, &admin().reveal())).await;
    let (_agent, address) = start(broker_address, cluster_address, &key).await;
    let counted = |text: &str, start: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(start).map(str::to_owned));
        line.is_some_and(|rest| rest.trim().parse::<f64>().unwrap() > 0.0)
    };
    for line in [
        "sindri_agent_polls_total{result=\"new\"}",
        "sindri_agent_polls_total{result=\"nothing_new\"}",
        "sindri_agent_passes_total{outcome=\"done\"}",
        "sindri_agent_last_pass_seconds",
        "sindri_agent_kubernetes_calls_total{verb=\"patch\",status=\"2xx\"}",
        "sindri_agent_kubernetes_calls_total{verb=\"get\",status=\"2xx\"}",
        "sindri_agent_stacks ",
        "sindri_agent_managed_objects ",
    ] {
        wait_for(address, "/metrics", |status, text| status == 200 && counted(text, line)).await;
    }
    let (_, text) = send(address, "GET", "/metrics").await;
    assert!(text.contains("\nsindri_agent_managed_objects 1\n") && text.ends_with("# EOF\n"), "{text}");
    assert!(!text.contains("east") && !text.contains("web"), "no name is a label: {text}");
}

#[tokio::test]
async fn other_paths_and_methods_are_rejected() {
    let (_broker, broker_address) = listener().await;
    let (_cluster, cluster_address) = listener().await;
    let (_agent, address) = start(broker_address, cluster_address, "brokkr_BRa_b").await;
    assert_eq!(send(address, "GET", "/").await.0, 404);
    assert_eq!(send(address, "POST", "/healthz").await.0, 405);
    assert_eq!(send(address, "HEAD", "/healthz").await, (200, String::new()));
}

#[test]
fn the_process_prints_the_address_of_its_probes_and_exits_with_0_on_sigterm() {
    let directory = tempfile::tempdir().unwrap();
    let kubeconfig = directory.path().join("kubeconfig");
    let cluster = "clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]\nusers: [{name: a, user: {}}]\n";
    let context = "contexts: [{name: a, context: {cluster: a, user: a}}]\ncurrent-context: a\n";
    std::fs::write(&kubeconfig, format!("{cluster}{context}")).unwrap();
    let mut command = agent();
    command.args(["--name", "east", "--cluster", "demo", "--broker", "http://127.0.0.1:1", "--log", "off"]);
    command.args(["--listen", "127.0.0.1:0"]).env("SINDRI__AGENT__PAK", "brokkr_BRa_b");
    let mut process = command.arg("--kubeconfig").arg(kubeconfig).stdout(Stdio::piped()).spawn().unwrap();
    let line = BufReader::new(process.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    let mut stream = std::net::TcpStream::connect(line.strip_prefix("PROBES http://").unwrap()).unwrap();
    stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 503") && response.contains("application/json"), "{response}");
    let killed = std::process::Command::new("kill").args(["-TERM", &process.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(process.wait().unwrap().code(), Some(0), "SIGTERM is not a failure");
}
