//! The server binary on a real port, used through the real `kubectl`.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

const SHOP: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {colour: blue}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: 'nginx:1', ports: [{containerPort: 80}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}, ports: [{port: 80}]}
";

const CRD: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.io}
spec:
  group: example.io
  scope: Namespaced
  names: {plural: gadgets, kind: Gadget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
";

const GADGET: &str = "
apiVersion: example.io/v1
kind: Gadget
metadata: {name: wheel, namespace: shop}
spec: {size: 3}
";

/// Number of attempts for a condition that takes a moment.
const POLLS_MAX: usize = 50;

/// A running server; killed when dropped.
pub struct Server {
    pub process: Child,
    pub home: TempDir,
    pub url: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _already_gone = self.process.kill();
        let _already_gone = self.process.wait();
    }
}

impl Server {
    /// Starts the server with TLS and one node.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    pub fn start_with(flags: &[&str]) -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        let mut process = Command::new(env!("CARGO_BIN_EXE_sindri-apiserver"))
            .args(["serve", "--kubeconfig"])
            .arg(home.path().join("kubeconfig"))
            .arg("--cert-dir")
            .arg(home.path().join("certificates"))
            .args(flags)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let output = process.stdout.take().expect("piped");
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).expect("a line");
        let url = line.strip_prefix("READY ").expect("the ready line").trim().to_owned();
        Self { process, home, url }
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let home: &Path = self.home.path();
        let mut command = Command::new("kubectl");
        command.args(arguments).env("HOME", home).env("KUBECONFIG", home.join("kubeconfig"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn kubectl_output(&self, arguments: &[&str], input: &str) -> Output {
        let mut kubectl = self.command(arguments).spawn().expect("kubectl must be on the PATH for this test");
        kubectl.stdin.take().expect("piped").write_all(input.as_bytes()).expect("kubectl reads its input");
        kubectl.wait_with_output().expect("kubectl ends")
    }

    /// Runs kubectl, checks that it succeeds and returns its output.
    pub fn kubectl(&self, arguments: &[&str], input: &str) -> String {
        let output = self.kubectl_output(arguments, input);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {arguments:?} failed: {errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Starts a server with the shop deployed and its pods running.
    fn with_shop() -> Self {
        let server = Self::start();
        server.kubectl(&["apply", "--server-side", "-f", "-"], SHOP);
        server.kubectl(&["rollout", "status", "deploy/web", "-n", "shop", "--timeout=20s"], "");
        server
    }
}

#[test]
fn kubectl_works_as_with_a_real_cluster() {
    let server = Server::start();
    let namespaces = server.kubectl(&["get", "ns"], "");
    assert!(namespaces.contains("kube-system") && namespaces.contains("Active"), "{namespaces}");

    let applied = server.kubectl(&["apply", "--server-side", "-f", "-"], SHOP);
    assert_eq!(applied.matches("serverside-applied").count(), 4, "{applied}");
    server.kubectl(&["rollout", "status", "deploy/web", "-n", "shop", "--timeout=20s"], "");
    let resource_version = |server: &Server| {
        server.kubectl(&["get", "deploy", "web", "-n", "shop", "-o", "jsonpath={.metadata.resourceVersion}"], "")
    };
    let before = resource_version(&server);
    server.kubectl(&["apply", "--server-side", "-f", "-"], SHOP);
    assert_eq!(resource_version(&server), before, "an unchanged apply writes nothing");
    let deployments = server.kubectl(&["get", "deploy", "-n", "shop"], "");
    assert!(deployments.starts_with("NAME") && deployments.contains("web    1/1"), "{deployments}");

    server.kubectl(&["apply", "--server-side", "-f", "-"], CRD);
    server.kubectl(&["wait", "--for=condition=Established", "crd/gadgets.example.io", "--timeout=20s"], "");
    let served = (0..POLLS_MAX).any(|_| server.kubectl(&["api-resources"], "").contains("gadgets"));
    assert!(served, "the kind appears in discovery");
    server.kubectl(&["apply", "--server-side", "-f", "-"], GADGET);
    let gadgets = server.kubectl(&["get", "gadgets", "-A", "-o", "name"], "");
    assert_eq!(gadgets, "gadget.example.io/wheel\n");

    let invalid = server.kubectl_output(&["apply", "--server-side", "-f", "-"], &GADGET.replace("size: 3", "shape: 3"));
    let errors = String::from_utf8_lossy(&invalid.stderr).into_owned();
    assert!(!invalid.status.success() && errors.contains(".spec.shape: field not declared in schema"), "{errors}");

    server.kubectl(&["label", "cm/settings", "-n", "shop", "tier=a"], "");
    assert_eq!(server.kubectl(&["get", "cm", "-n", "shop", "-l", "tier=a", "-o", "name"], ""), "configmap/settings\n");
    server.kubectl(&["delete", "ns", "shop"], "");
    let missing = server.kubectl_output(&["get", "cm", "settings", "-n", "shop"], "");
    let errors = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert_eq!(errors, "Error from server (NotFound): namespaces \"shop\" not found\n");
}

#[test]
fn kubectl_scales_rolls_out_and_waits() {
    let server = Server::with_shop();
    server.kubectl(&["scale", "deploy/web", "-n", "shop", "--replicas=3"], "");
    server.kubectl(&["rollout", "status", "deploy/web", "-n", "shop", "--timeout=20s"], "");
    let wide = server.kubectl(&["get", "pods", "-n", "shop", "-o", "wide"], "");
    assert_eq!(wide.matches("Running").count(), 3, "{wide}");
    assert!(wide.lines().next().is_some_and(|head| head.contains("NODE")) && wide.contains("node-1"), "{wide}");
    server.kubectl(&["set", "image", "deploy/web", "-n", "shop", "web=nginx:2"], "");
    let rolled = server.kubectl(&["rollout", "status", "deploy/web", "-n", "shop", "--timeout=30s"], "");
    assert!(rolled.contains("successfully rolled out"), "{rolled}");
    let history = server.kubectl(&["rollout", "history", "deploy/web", "-n", "shop"], "");
    assert!(history.lines().any(|line| line.starts_with('2')), "{history}");
    server.kubectl(&["rollout", "undo", "deploy/web", "-n", "shop"], "");
    server.kubectl(&["wait", "--for=condition=Available", "deploy/web", "-n", "shop", "--timeout=20s"], "");
    let image = ["get", "deploy", "web", "-n", "shop", "-o", "jsonpath={.spec.template.spec.containers[0].image}"];
    assert_eq!(server.kubectl(&image, ""), "nginx:1");
    let endpoints = server.kubectl(&["get", "endpointslices", "-n", "shop"], "");
    assert!(endpoints.contains("10.244."), "{endpoints}");
    let nodes = server.kubectl(&["get", "nodes"], "");
    assert!(nodes.contains("node-1") && nodes.contains("Ready"), "{nodes}");
    server.kubectl(&["delete", "deploy/web", "-n", "shop", "--wait=true", "--timeout=20s"], "");
    server.kubectl(&["wait", "--for=delete", "pod", "-l", "app=web", "-n", "shop", "--timeout=20s"], "");
}

#[test]
fn kubectl_applies_client_side_diffs_and_patches() {
    let server = Server::with_shop();
    let green = SHOP.replace("blue", "green");
    let diff = server.kubectl_output(&["diff", "--server-side", "--force-conflicts", "-f", "-"], &green);
    let output = String::from_utf8_lossy(&diff.stdout).into_owned();
    assert!(diff.status.code() == Some(1) && output.contains("+  colour: green"), "{output}");
    let own = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine, namespace: shop}\ndata: {a: one, b: two}\n";
    server.kubectl(&["apply", "-f", "-"], own);
    let applied = server.kubectl(&["apply", "-f", "-"], &own.replace(", b: two", "").replace("one", "three"));
    assert_eq!(applied, "configmap/mine configured\n");
    let data = ["get", "cm", "mine", "-n", "shop", "-o", "jsonpath={.data}"];
    assert_eq!(server.kubectl(&data, ""), "{\"a\":\"three\"}", "a key that is no longer declared is removed");
    server.kubectl(&["patch", "cm", "mine", "-n", "shop", "--type=merge", "-p", "{\"data\":{\"c\":\"four\"}}"], "");
    server.kubectl(&["annotate", "cm", "mine", "-n", "shop", "note=kept"], "");
    server.kubectl(&["create", "-f", "-"], &own.replace("mine", "other"));
    let described = server.kubectl(&["describe", "cm", "mine", "-n", "shop"], "");
    assert!(described.contains("note: kept") && described.contains("four"), "{described}");
    server.kubectl(&["delete", "cm", "other", "-n", "shop"], "");
    assert!(!server.kubectl_output(&["get", "cm", "other", "-n", "shop"], "").status.success());
}

#[test]
fn kubectl_explains_describes_and_lists() {
    let server = Server::with_shop();
    let explained = server.kubectl(&["explain", "deployment.spec.strategy"], "");
    assert!(explained.contains("FIELD: strategy") && explained.contains("rollingUpdate"), "{explained}");
    let described = server.kubectl(&["describe", "deploy/web", "-n", "shop"], "");
    assert!(described.contains("ScalingReplicaSet") && described.contains("1 available"), "{described}");
    let pod = server.kubectl(&["describe", "pod", "-l", "app=web", "-n", "shop"], "");
    assert!(pod.contains("Successfully assigned shop/web-") && pod.contains("Status:           Running"), "{pod}");
    let listed = server.kubectl(&["api-resources", "--api-group=apps"], "");
    assert!(listed.contains("statefulsets"), "{listed}");
    assert!(server.kubectl(&["get", "all", "-n", "shop"], "").contains("replicaset.apps/web-"));
    assert!(server.kubectl(&["get", "events", "-n", "shop"], "").contains("SuccessfulCreate"));
}

#[test]
fn kubectl_creates_with_its_typed_commands_and_checks_permissions() {
    let server = Server::start();
    server.kubectl(&["create", "deployment", "web", "--image=nginx:1", "--replicas=2", "--port=80"], "");
    server.kubectl(&["expose", "deployment", "web", "--port=80"], "");
    server.kubectl(&["rollout", "status", "deploy/web", "--timeout=20s"], "");
    server.kubectl(&["run", "tool", "--image=busybox", "--env=A=b"], "");
    server.kubectl(&["wait", "--for=condition=Ready", "pod/tool", "--timeout=20s"], "");
    server.kubectl(&["create", "job", "sum", "--image=busybox"], "");
    server.kubectl(&["wait", "--for=condition=Complete", "job/sum", "--timeout=20s"], "");
    server.kubectl(&["create", "secret", "generic", "key", "--from-literal=a=b"], "");
    let secret = server.kubectl(&["get", "secret", "key", "-o", "jsonpath={.data.a}"], "");
    assert_eq!(secret, "Yg==");
    assert_eq!(server.kubectl(&["auth", "can-i", "delete", "nodes"], ""), "yes\n");
    server.kubectl(&["create", "serviceaccount", "reader"], "");
    let account = "--as=system:serviceaccount:default:reader";
    let refused = server.kubectl_output(&["auth", "can-i", "list", "pods", account], "");
    assert_eq!(String::from_utf8_lossy(&refused.stdout), "no\n");
    server.kubectl(&["create", "role", "reading", "--verb=list", "--resource=pods"], "");
    server.kubectl(&["create", "rolebinding", "reading", "--role=reading", "--serviceaccount=default:reader"], "");
    assert_eq!(server.kubectl(&["auth", "can-i", "list", "pods", account], ""), "yes\n");
    assert!(server.kubectl(&["auth", "whoami"], "").contains("administrator"));
}

#[test]
fn kubectl_prints_changes_as_they_happen() {
    let server = Server::with_shop();
    let mut watching =
        server.command(&["get", "cm", "-n", "shop", "-w", "-o", "name"]).spawn().expect("kubectl starts");
    let mut lines = BufReader::new(watching.stdout.take().expect("piped")).lines();
    let mut next = || lines.next().expect("a line").expect("a text");
    let known = [next(), next()];
    assert!(known.contains(&"configmap/settings".to_owned()), "{known:?}");
    server.kubectl(&["annotate", "cm/settings", "-n", "shop", "seen=yes"], "");
    assert_eq!(next(), "configmap/settings");
    watching.kill().expect("kubectl runs");
    watching.wait().expect("kubectl ends");
}

#[test]
fn usage_errors_exit_with_code_2_and_one_line() {
    let output = Command::new(env!("CARGO_BIN_EXE_sindri-apiserver"))
        .args(["serve", "--kubeconfig", "/nonexistent/directory/kubeconfig"])
        .output()
        .expect("the binary starts");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(errors.starts_with("error: cannot write the kubeconfig /nonexistent/"), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
}

#[test]
fn sigterm_shuts_the_server_down_cleanly() {
    let mut server = Server::start();
    let sent = Command::new("kill").arg(server.process.id().to_string()).status().expect("kill runs");
    assert!(sent.success());
    assert_eq!(server.process.wait().expect("the server ends").code(), Some(0));
}

#[test]
fn plain_http_needs_no_token_and_tls_does() {
    let plain = Server::start_with(&["--plain-http", "--nodes=0"]);
    assert!(plain.url.starts_with("http://127.0.0.1:"), "{}", plain.url);
    assert_eq!(plain.kubectl(&["get", "nodes", "-o", "name"], ""), "");
    let server = Server::start();
    assert!(server.url.starts_with("https://127.0.0.1:"), "{}", server.url);
    let refused = server.kubectl_output(&["get", "ns", "--token=nonsense"], "");
    assert!(!refused.status.success());
    let mode = |path: &Path| std::os::unix::fs::MetadataExt::mode(&path.metadata().expect("the file exists")) & 0o777;
    assert_eq!(mode(&server.home.path().join("kubeconfig")), 0o600);
    assert_eq!(mode(&server.home.path().join("certificates/admin.key")), 0o600);
}

#[test]
fn the_first_name_is_that_of_the_kubeconfig_and_the_certificate_has_all() {
    let server = Server::start_with(&["--bind-address=0.0.0.0", "--name=sim.example", "--name=10.1.2.3", "--nodes=0"]);
    let port = server.url.strip_prefix("https://sim.example:").expect("the name").to_owned();
    let kubeconfig = std::fs::read_to_string(server.home.path().join("kubeconfig")).expect("a kubeconfig");
    assert!(kubeconfig.contains(&server.url), "{kubeconfig}");
    for name in ["sim.example", "10.1.2.3", "localhost"] {
        let flags = [format!("--server=https://127.0.0.1:{port}"), format!("--tls-server-name={name}")];
        server.kubectl(&["get", "ns", &flags[0], &flags[1]], "");
    }
    let unnamed = Server::start_with(&["--bind-address=0.0.0.0", "--nodes=0"]);
    assert!(unnamed.url.starts_with("https://127.0.0.1:"), "{}", unnamed.url);
}

#[test]
fn a_client_certificate_authenticates_the_user() {
    let server = Server::start();
    let file = |name: &str| server.home.path().join("certificates").join(name).display().to_string();
    let mut bare = std::fs::read_to_string(server.home.path().join("kubeconfig")).expect("a kubeconfig");
    bare = bare.lines().filter(|line| !line.contains("token:")).map(|line| format!("{line}\n")).collect();
    let anonymous = server.home.path().join("anonymous");
    std::fs::write(&anonymous, bare).expect("a file");
    let anonymous = format!("--kubeconfig={}", anonymous.display());
    let (certificate, key) =
        (format!("--client-certificate={}", file("admin.crt")), format!("--client-key={}", file("admin.key")));
    let listed = server.kubectl(&["get", "ns", "-o", "name", &anonymous, &certificate, &key], "");
    assert!(listed.contains("namespace/default"), "{listed}");
}
