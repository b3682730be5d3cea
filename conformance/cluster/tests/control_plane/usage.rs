//! Behaviour of a control plane that its users rely on, the same with every provider.

use std::time::Duration;

use http::{Method, Request};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use sindri_cluster::{Access, ContainerProvider, Home, Options, Provider};

use crate::support::TestHome;

/// Timeout of a controller on an overloaded machine.
const CONTROLLER_MAX: Duration = Duration::from_secs(90);

/// A user of a cluster.
pub struct User {
    client: Client,
}

impl User {
    pub async fn new(access: &Access) -> Self {
        let file = Kubeconfig::read_from(&access.kubeconfig).unwrap();
        let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
        Self { client: Client::try_from(config).unwrap() }
    }

    pub async fn call(&self, method: Method, path: &str, body: Value) -> Result<Value, u16> {
        let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        let body = if body.is_null() { Vec::new() } else { serde_json::to_vec(&body).unwrap() };
        match self.client.request(request.body(body).unwrap()).await {
            Ok(object) => Ok(object),
            Err(kube::Error::Api(status)) => Err(status.code),
            Err(error) => panic!("{path}: {error}"),
        }
    }

    pub async fn get(&self, path: &str) -> Result<Value, u16> {
        self.call(Method::GET, path, Value::Null).await
    }

    async fn create(&self, path: &str, body: Value) -> Value {
        self.call(Method::POST, path, body).await.unwrap()
    }

    /// Reads an object until the condition holds for it or for the status of the error.
    async fn wait_until(&self, path: &str, holds: impl Fn(&Result<Value, u16>) -> bool) {
        let mut last = Err(0);
        let waited = tokio::time::timeout(CONTROLLER_MAX, async {
            loop {
                last = self.get(path).await;
                if holds(&last) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
        assert!(waited.await.is_ok(), "{path} did not reach the expected state: {last:?}");
    }
}

fn has_condition(object: &Result<Value, u16>, condition_type: &str) -> bool {
    let conditions = object.as_ref().ok().and_then(|object| object["status"]["conditions"].as_array());
    let is_met = |condition: &Value| condition["type"] == condition_type && condition["status"] == "True";
    conditions.is_some_and(|conditions| conditions.iter().any(is_met))
}

/// Checks workloads, CRDs, garbage collection, quotas and the deletion of namespaces.
pub fn check_behaviour(access: &Access) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let user = User::new(access).await;
        user.create("/api/v1/namespaces", json!({"metadata": {"name": "usage"}})).await;
        check_deployment(&user).await;
        check_custom_resource(&user).await;
        check_garbage_collection(&user).await;
        check_quota_resync(&user).await;
        check_namespace_deletion(&user).await;
    });
}

async fn check_deployment(user: &User) {
    let labels = json!({"app": "web"});
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web"}]}});
    let spec = json!({"replicas": 3, "selector": {"matchLabels": labels}, "template": template});
    let deployments = "/apis/apps/v1/namespaces/usage/deployments";
    user.create(deployments, json!({"metadata": {"name": "web"}, "spec": spec})).await;
    user.wait_until(&format!("{deployments}/web"), |found| {
        has_condition(found, "Available") && found.as_ref().is_ok_and(|found| found["status"]["readyReplicas"] == 3)
    })
    .await;
}

async fn check_custom_resource(user: &User) {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let names = json!({"plural": "gears", "singular": "gear", "kind": "Gear"});
    let spec = json!({"group": "usage.dev", "scope": "Namespaced", "names": names, "versions": [version]});
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    user.create(crds, json!({"metadata": {"name": "gears.usage.dev"}, "spec": spec})).await;
    user.wait_until(&format!("{crds}/gears.usage.dev"), |found| has_condition(found, "Established")).await;
    let gears = "/apis/usage.dev/v1/namespaces/usage/gears";
    // The condition is set a moment before the resource is served.
    user.wait_until(gears, Result::is_ok).await;
    let gear = json!({"apiVersion": "usage.dev/v1", "kind": "Gear", "metadata": {"name": "one"}, "spec": {"size": 3}});
    user.create(gears, gear.clone()).await;
    assert_eq!(user.get(&format!("{gears}/one")).await.unwrap()["spec"]["size"], 3);
    let mut wrong = gear;
    wrong["metadata"]["name"] = "two".into();
    wrong["spec"]["size"] = "large".into();
    assert_eq!(user.call(Method::POST, gears, wrong).await, Err(422));
}

async fn check_garbage_collection(user: &User) {
    let maps = "/api/v1/namespaces/usage/configmaps";
    let owner = user.create(maps, json!({"metadata": {"name": "owner"}})).await;
    let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]});
    user.create(maps, json!({"metadata": {"name": "owned", "ownerReferences": [reference]}})).await;
    user.create(maps, json!({"metadata": {"name": "free"}})).await;
    user.call(Method::DELETE, &format!("{maps}/owner"), Value::Null).await.unwrap();
    user.wait_until(&format!("{maps}/owned"), |found| *found == Err(404)).await;
    assert!(user.get(&format!("{maps}/free")).await.is_ok());
}

/// The controller ignores the status until its periodic recount. The recount is needed: a deletion that the controller sees
/// before it has counted the creation leaves the count too high.
async fn check_quota_resync(user: &User) {
    let quotas = "/api/v1/namespaces/usage/resourcequotas";
    let quota = json!({"metadata": {"name": "few"}, "spec": {"hard": {"count/secrets": "1"}}});
    user.create(quotas, quota).await;
    let counts = |found: &Result<Value, u16>, used: &str| {
        found.as_ref().is_ok_and(|found| found["status"]["used"]["count/secrets"] == used)
    };
    let few = format!("{quotas}/few");
    user.wait_until(&few, |found| counts(found, "0")).await;
    let mut wrong = user.get(&few).await.unwrap();
    wrong["status"]["used"]["count/secrets"] = "1".into();
    let wrong = user.call(Method::PUT, &format!("{few}/status"), wrong).await;
    assert!(counts(&wrong, "1"), "{wrong:?}");
    user.wait_until(&few, |found| counts(found, "0")).await;
}

async fn check_namespace_deletion(user: &User) {
    assert!(user.get("/api/v1/namespaces/usage/configmaps/free").await.is_ok());
    user.call(Method::DELETE, "/api/v1/namespaces/usage", Value::Null).await.unwrap();
    user.wait_until("/api/v1/namespaces/usage", |found| *found == Err(404)).await;
    let pods = user.get("/api/v1/pods").await.unwrap();
    assert_eq!(pods["items"].as_array().unwrap().len(), 0, "{pods}");
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn a_local_cluster_works_and_leaves_nothing_behind() {
    let home = TestHome::new();
    let cluster = home.start(Options::default()).unwrap();
    assert_eq!(cluster.version(), "v1.35.4");
    let ids: Vec<u32> = cluster.processes().into_iter().map(|(_, id)| id).collect();
    assert_eq!(ids.len(), 6, "{:?}", cluster.processes());
    assert!(cluster.logs().unwrap().join("kube-apiserver.log").is_file());
    check_behaviour(cluster.access());
    drop(cluster);
    assert!(!ids.iter().any(|id| std::path::Path::new(&format!("/proc/{id}")).exists()));
    home.assert_clean();
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn a_pristine_cluster_has_no_controllers_and_accepts_the_client_certificate() {
    let home = TestHome::new();
    let cluster = home.start(Options { pristine: true, ..Options::default() }).unwrap();
    let names: Vec<String> = cluster.processes().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["etcd", "kube-apiserver", "plane"]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let user = User::new(cluster.access()).await;
        assert_eq!(user.get("/version").await.unwrap()["gitVersion"], "v1.35.4");
        assert_eq!(user.get("/api/v1/namespaces/default/serviceaccounts/default").await, Err(404));
        assert_eq!(user.get("/api/v1/nodes").await.unwrap()["items"], json!([]));
        check_certificate(cluster.access()).await;
    });
}

/// Checks that the client certificate is accepted like the token.
async fn check_certificate(access: &Access) {
    use base64::Engine as _;
    let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    let pair = access.client_certificate.as_ref().unwrap();
    let (certificate, key) = (encode(&pair.certificate_pem), encode(pair.key_pem.expose()));
    let authority = encode(access.authority_pem.as_ref().unwrap());
    let file = json!({
        "clusters": [{"name": "c", "cluster": {"server": access.server, "certificate-authority-data": authority}}],
        "users": [{"name": "u", "user": {"client-certificate-data": certificate, "client-key-data": key}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    });
    let file: Kubeconfig = serde_json::from_value(file).unwrap();
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
    let user = User { client: Client::try_from(config).unwrap() };
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let review = user.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", review).await;
    assert_eq!(review["status"]["userInfo"]["groups"], json!(["system:masters", "system:authenticated"]));
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn a_cluster_in_a_container_works_the_same_and_leaves_nothing_behind() {
    let home = TestHome::new();
    let options = Options { directory: Some(home.path().join("cluster")), ..Options::default() };
    let cluster = match ContainerProvider::new(Home::from_env()).start(&options) {
        Err(error) if error.is_not_run() => {
            eprintln!("NOT RUN: {error}");
            return;
        }
        started => started.unwrap(),
    };
    check_behaviour(cluster.access());
    let port = cluster.access().server.rsplit(':').next().unwrap().parse().unwrap();
    drop(cluster);
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err(), "port {port} is still open");
    home.assert_clean();
}
