//! The administrator's endpoints: fault rules, time, and pod outcomes.

use serde_json::Value;

use crate::kubectl::Server;

impl Server {
    /// Sends a request with the administrator's token; returns the status code and the parsed body.
    fn request(&self, method: &str, path: &str, body: &str) -> (String, Value) {
        let token = std::fs::read_to_string(self.home.path().join("certificates/token")).expect("a token");
        self.request_as(&token, method, path, body)
    }

    /// Returns the exit code of curl and its output.
    fn request_raw(&self, method: &str, path: &str) -> (Option<i32>, String) {
        let token = std::fs::read_to_string(self.home.path().join("certificates/token")).expect("a token");
        let output = std::process::Command::new("curl")
            .args(["--silent", "--cacert"])
            .arg(self.home.path().join("certificates/ca.crt"))
            .args(["-X", method, "-H", &format!("Authorization: Bearer {token}"), &format!("{}{path}", self.url)])
            .output()
            .expect("curl must be on the PATH for this test");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn request_as(&self, token: &str, method: &str, path: &str, body: &str) -> (String, Value) {
        let authority = self.home.path().join("certificates/ca.crt");
        let output = std::process::Command::new("curl")
            .args(["--silent", "--cacert"])
            .arg(authority)
            .args(["-X", method, "-H", &format!("Authorization: Bearer {token}"), "-d", body])
            .args(["-w", "\n%{http_code}", &format!("{}{path}", self.url)])
            .output()
            .expect("curl must be on the PATH for this test");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let (body, status) = text.rsplit_once('\n').expect("a status");
        (status.to_owned(), serde_json::from_str(body).unwrap_or(Value::Null))
    }
}

#[test]
fn a_fault_occurs_as_often_as_its_rule_says() {
    let server = Server::start();
    let rule = r#"{"method":"GET","path":"/api/v1/namespaces","times":1,"fault":{"refuse":{"status":503,"retryAfterSeconds":1}}}"#;
    assert_eq!(server.request("POST", "/sindri/faults", rule).0, "200");
    assert_eq!(server.request("GET", "/api/v1/namespaces", "").0, "503");
    assert_eq!(server.request("GET", "/api/v1/namespaces", "").0, "200");
    assert_eq!(server.request("POST", "/sindri/faults", r#"{"fault":"cut"}"#).0, "200");
    assert_eq!(server.request("GET", "/version", "").0, "000", "the connection is cut");
    let (_, remaining) = server.request("DELETE", "/sindri/faults", "");
    assert_eq!(remaining["rules"].as_array().map(Vec::len), Some(0));
    assert_eq!(server.request("GET", "/version", "").0, "200");
}

#[test]
fn a_fault_rule_matches_a_verb_a_resource_or_one_object() {
    let server = Server::start();
    let object = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}"#;
    server.kubectl(&["apply", "-f", "-"], object);
    let rule =
        r#"{"verb":"get","resource":"configmaps","namespace":"default","name":"a","fault":{"refuse":{"status":503}}}"#;
    assert_eq!(server.request("POST", "/sindri/faults", rule).0, "200");
    let maps = "/api/v1/namespaces/default/configmaps";
    assert_eq!(server.request("GET", &format!("{maps}/a"), "").0, "503");
    assert_eq!(server.request("GET", maps, "").0, "200", "a list is not a get");
    assert_eq!(server.request("GET", &format!("{maps}/kube-root-ca.crt"), "").0, "200", "another object");
    assert_eq!(server.request("GET", "/api/v1/namespaces/default/secrets/a", "").0, "404", "another kind");
    server.request("DELETE", "/sindri/faults", "");
    let rule = r#"{"resource":"deployments.apps","percent":50,"fault":{"refuse":{"status":503}}}"#;
    assert_eq!(server.request("POST", "/sindri/faults", rule).0, "200");
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let refused = (0..40).filter(|_| server.request("GET", deployments, "").0 == "503").count();
    assert!((5..36).contains(&refused), "{refused} of 40 were refused, about half is expected");
    for wrong in [r#"{"verb":"look"}"#, r#"{"percent":101}"#, r#"{"fault":{"breakStream":{"how":"slowly"}}}"#] {
        assert_eq!(server.request("POST", "/sindri/faults", wrong).0, "400", "{wrong}");
    }
}

#[test]
fn a_watch_stream_is_cut() {
    let server = Server::start();
    let rule = r#"{"verb":"watch","times":1,"fault":{"breakStream":{"afterEvents":1,"how":"cut"}}}"#;
    assert_eq!(server.request("POST", "/sindri/faults", rule).0, "200");
    // The first watch sends only one of the existing objects before it breaks; the next watch is complete.
    let watch = || server.request_raw("GET", "/api/v1/namespaces?watch=true&timeoutSeconds=1");
    let (code, events) = watch();
    // A stream of HTTP/2 is reset; other requests of the connection continue.
    assert_eq!((code, events.lines().count()), (Some(92), 1), "curl reports a broken stream: {events}");
    let (code, events) = watch();
    assert_eq!(code, Some(0), "{events}");
    assert!(events.lines().count() > 1, "{events}");
}

#[test]
fn time_can_be_frozen_and_advanced() {
    let server = Server::start();
    let now = |response: &Value| response["now"].as_str().expect("a time").to_owned();
    let (_, frozen) = server.request("POST", "/sindri/time", r#"{"freeze":true}"#);
    let (_, unchanged) = server.request("GET", "/sindri/time", "");
    assert_eq!(now(&frozen), now(&unchanged));
    let cron = "
apiVersion: batch/v1
kind: CronJob
metadata: {name: tick}
spec:
  schedule: '0 * * * *'
  jobTemplate:
    spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}}}
";
    server.kubectl(&["apply", "-f", "-"], cron);
    assert_eq!(server.kubectl(&["get", "jobs", "-o", "name"], ""), "");
    assert_eq!(server.request("POST", "/sindri/time", r#"{"advanceSeconds":7200}"#).0, "200");
    let jobs = server.kubectl(&["get", "jobs"], "");
    assert_eq!(jobs.matches("Complete").count(), 2, "two hours were skipped: {jobs}");
    assert_eq!(server.request("POST", "/sindri/time", r#"{"advanceSeconds":-1}"#).0, "400");
    let (_, resumed) = server.request("POST", "/sindri/time", r#"{"freeze":false}"#);
    assert_eq!(resumed["frozen"], false);
    assert!(now(&resumed) > now(&unchanged), "time continues from the frozen time");
}

#[test]
fn pods_crash_if_a_rule_says_so() {
    let server = Server::start();
    let rule = r#"{"image":"broken","fate":"crash-loop"}"#;
    assert_eq!(server.request("POST", "/sindri/pods", rule).0, "200");
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: sick}\nspec: {containers: [{name: main, image: broken}]}\n";
    server.kubectl(&["apply", "-f", "-"], pod);
    assert_eq!(server.request("POST", "/sindri/time", r#"{"advanceSeconds":60}"#).0, "200");
    let listed = server.kubectl(&["get", "pod", "sick"], "");
    assert!(listed.contains("CrashLoopBackOff"), "{listed}");
}

#[test]
fn only_the_administrator_has_access_and_malformed_requests_are_rejected() {
    let server = Server::start();
    assert_eq!(server.request_as("guess", "GET", "/sindri/faults", "").0, "401");
    assert_eq!(server.request_as("", "GET", "/sindri/faults", "").0, "403", "an anonymous user");
    assert_eq!(server.request_as("", "GET", "/api/v1/namespaces", "").0, "403");
    assert_eq!(server.request("POST", "/sindri/faults", "{").0, "400");
    assert_eq!(server.request("POST", "/sindri/faults", r#"{"fault":{"refuse":{"status":200}}}"#).0, "400");
    assert_eq!(server.request("POST", "/sindri/pods", r#"{"fate":"unknown"}"#).0, "400");
    assert_eq!(server.request("GET", "/sindri/elsewhere", "").0, "404");
}

#[test]
fn a_snapshot_is_taken_and_restored() {
    let server = Server::start();
    let namespace = r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"later"}}"#;
    assert_eq!(server.request("POST", "/sindri/snapshots", r#"{"restore":"missing"}"#).0, "400");
    let (_, taken) = server.request("POST", "/sindri/snapshots", r#"{"take":"before"}"#);
    assert_eq!(taken["snapshots"][0]["name"], "before", "{taken}");
    server.kubectl(&["apply", "-f", "-"], namespace);
    assert_eq!(server.request("GET", "/api/v1/namespaces/later", "").0, "200");
    assert_eq!(server.request("POST", "/sindri/snapshots", r#"{"restore":"before"}"#).0, "200");
    assert_eq!(server.request("GET", "/api/v1/namespaces/later", "").0, "404");
    assert_eq!(server.request("GET", "/api/v1/namespaces/default", "").0, "200");
}

#[test]
fn rules_for_commands_and_ports_are_listed_and_removed() {
    let server = Server::start();
    let rule = r#"{"pod":"web-","command":"psql","stdout":"1 row\n","exitCode":3}"#;
    let (status, listed) = server.request("POST", "/sindri/exec", rule);
    assert_eq!((status.as_str(), &listed["rules"][0]["exitCode"]), ("200", &Value::from(3)), "{listed}");
    let (_, listed) = server.request("POST", "/sindri/exec", r#"{"stderr":"no\n"}"#);
    assert_eq!(listed["rules"][0]["stderr"], "no\n", "the newer rule comes first: {listed}");
    let (status, listed) = server.request("POST", "/sindri/ports", r#"{"port":81,"refuse":true}"#);
    assert_eq!((status.as_str(), &listed["rules"][0]["port"]), ("200", &Value::from(81)), "{listed}");
    for (path, wrong) in [
        ("/sindri/exec", r#"{"exitCode":256}"#),
        ("/sindri/exec", r#"{"output":"x"}"#),
        ("/sindri/ports", r#"{"port":65536}"#),
    ] {
        assert_eq!(server.request("POST", path, wrong).0, "400", "{wrong}");
    }
    for path in ["/sindri/exec", "/sindri/ports"] {
        assert_eq!(server.request("PUT", path, "").0, "405");
        let (_, left) = server.request("DELETE", path, "");
        assert_eq!(left["rules"], Value::Array(Vec::new()));
    }
}
