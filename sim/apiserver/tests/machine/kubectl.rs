//! The real binary on a real port, seen by the real `kubectl`.

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

const DEFINITION: &str = "
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

/// How often a condition that takes a moment is looked at.
const POLLS_MAX: usize = 50;

/// A running server; ends with the test.
struct Server {
    process: Child,
    home: TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _already_gone = self.process.kill();
        let _already_gone = self.process.wait();
    }
}

impl Server {
    fn start() -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        let mut process = Command::new(env!("CARGO_BIN_EXE_sindri-apiserver"))
            .args(["serve", "--kubeconfig"])
            .arg(home.path().join("kubeconfig"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let output = process.stdout.take().expect("piped");
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).expect("a line");
        assert!(line.starts_with("READY http://127.0.0.1:"), "{line}");
        Self { process, home }
    }

    fn kubectl_output(&self, arguments: &[&str], input: &str) -> Output {
        let home: &Path = self.home.path();
        let mut command = Command::new("kubectl");
        command.args(arguments).env("HOME", home).env("KUBECONFIG", home.join("kubeconfig"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut kubectl = command.spawn().expect("kubectl must be on the PATH for this test");
        kubectl.stdin.take().expect("piped").write_all(input.as_bytes()).expect("kubectl reads its input");
        kubectl.wait_with_output().expect("kubectl ends")
    }

    /// What kubectl prints; it must succeed.
    fn kubectl(&self, arguments: &[&str], input: &str) -> String {
        let output = self.kubectl_output(arguments, input);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {arguments:?} failed: {errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

#[test]
fn kubectl_works_as_with_a_real_cluster() {
    let server = Server::start();
    let namespaces = server.kubectl(&["get", "ns"], "");
    assert!(namespaces.contains("kube-system") && namespaces.contains("Active"), "{namespaces}");

    let applied = server.kubectl(&["apply", "--server-side", "-f", "-"], SHOP);
    assert_eq!(applied.matches("serverside-applied").count(), 4, "{applied}");
    let version = |server: &Server| {
        server.kubectl(&["get", "deploy", "web", "-n", "shop", "-o", "jsonpath={.metadata.resourceVersion}"], "")
    };
    let before = version(&server);
    server.kubectl(&["apply", "--server-side", "-f", "-"], SHOP);
    assert_eq!(version(&server), before, "an unchanged apply writes nothing");
    let deployments = server.kubectl(&["get", "deploy", "-n", "shop"], "");
    assert!(deployments.starts_with("NAME") && deployments.contains("web    0/1"), "{deployments}");

    server.kubectl(&["apply", "--server-side", "-f", "-"], DEFINITION);
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
fn mistakes_end_with_code_2_and_one_line() {
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
fn sigterm_ends_the_server_cleanly() {
    let mut server = Server::start();
    let sent = Command::new("kill").arg(server.process.id().to_string()).status().expect("kill runs");
    assert!(sent.success());
    assert_eq!(server.process.wait().expect("the server ends").code(), Some(0));
}
