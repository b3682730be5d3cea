//! Certificate signing requests: their validation, their approval, and the certificates that a signer issues.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sindri_apiserver::{CertificateSigner, CertificateTerms, Credentials};

use crate::harness::Machine;

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

fn pem_request(user: &str, group: &str) -> String {
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::OrganizationName, group);
    params.distinguished_name.push(rcgen::DnType::CommonName, user);
    let key = rcgen::KeyPair::generate().expect("a key");
    params.serialize_request(&key).expect("a request").pem().expect("PEM")
}

fn request(name: &str, pem: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "request": STANDARD.encode(pem), "signerName": "kubernetes.io/kube-apiserver-client",
            "usages": ["client auth"], "username": "forged", "groups": ["forged"],
        },
    })
}

/// Returns the fields and messages of the causes of a rejection.
fn causes(body: &Value) -> Vec<String> {
    let causes = body["details"]["causes"].as_array().cloned().unwrap_or_default();
    let text = |cause: &Value, field: &str| cause[field].as_str().unwrap_or_default().to_owned();
    causes.iter().map(|cause| format!("{}: {}", text(cause, "field"), text(cause, "message"))).collect()
}

/// Signer that writes down its terms.
#[derive(Debug)]
struct Recorder;

impl CertificateSigner for Recorder {
    fn sign(&self, request: &str, terms: &CertificateTerms) -> Result<String, String> {
        assert!(request.starts_with("-----BEGIN CERTIFICATE REQUEST-----"));
        Ok(format!("{} to {} for {}", terms.not_before, terms.not_after, terms.usages.join(", ")))
    }
}

#[test]
fn a_request_names_its_requester_and_its_spec_does_not_change() {
    let mut machine = Machine::new();
    let created = machine.post(REQUESTS, &request("jane", &pem_request("jane", "developers")));
    assert_eq!(created.status, 201, "{}", created.body);
    let spec = &created.body["spec"];
    assert_eq!((&spec["username"], &spec["groups"][0]), (&json!("administrator"), &json!("system:masters")));
    let mut changed = created.body.clone();
    changed["spec"]["usages"] = json!(["server auth"]);
    changed["status"] = json!({"certificate": STANDARD.encode("forged")});
    let updated = machine.put(&format!("{REQUESTS}/jane"), &changed);
    assert_eq!((updated.status, &updated.body["spec"]), (200, spec));
    assert_eq!(updated.body["status"], json!({}));
}

#[test]
fn invalid_requests_are_rejected() {
    let mut machine = Machine::new();
    let mut invalid = request("jane", "no request");
    invalid["spec"]["usages"] = json!(["client auth", "client auth", "flying"]);
    invalid["spec"]["signerName"] = json!("none");
    invalid["spec"]["expirationSeconds"] = json!(599);
    let response = machine.post(REQUESTS, &invalid);
    assert_eq!(response.status, 422);
    let causes = causes(&response.body);
    let expected = [
        "spec.request: Invalid value: \"bm8gcmVxdWVzdA==\": PEM block type must be CERTIFICATE REQUEST",
        "spec.usages[2]: Unsupported value: \"flying\": supported values: \"any\", \"cert sign\"",
        "spec.usages[1]: Duplicate value: \"client auth\"",
        "spec.signerName: Invalid value: \"none\": must be a fully qualified domain and path",
        "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 seconds (10 minutes)",
    ];
    assert_eq!(causes.len(), expected.len(), "{causes:?}");
    causes.iter().zip(expected).for_each(|(cause, expected)| assert!(cause.starts_with(expected), "{cause}"));
    let tampered = pem_request("jane", "developers");
    let middle = tampered.len() - 60;
    let replacement = if &tampered[middle..=middle] == "A" { "B" } else { "A" };
    let tampered = format!("{}{replacement}{}", &tampered[..middle], &tampered[middle + 1..]);
    assert_eq!(machine.post(REQUESTS, &request("jane", &tampered)).status, 422, "the signature is wrong");
    let master = machine.post(REQUESTS, &request("jane", &pem_request("jane", "system:masters")));
    let (status, reason, message) = master.failure();
    assert_eq!((status, reason), (403, "Forbidden"));
    assert!(
        message.ends_with("use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed")
    );
}

#[test]
fn only_the_approval_subresource_approves_and_a_decision_stays() {
    let mut machine = Machine::new();
    let created = machine.post(REQUESTS, &request("jane", &pem_request("jane", "developers"))).body;
    let with = |conditions: Value| {
        let mut object = created.clone();
        object["metadata"]["resourceVersion"] = Value::Null;
        object["status"] = json!({ "conditions": conditions });
        object
    };
    let approved = json!({"type": "Approved", "status": "True", "reason": "ByTest"});
    let denied = json!({"type": "Denied", "status": "True"});
    let (status, approval) = (format!("{REQUESTS}/jane/status"), format!("{REQUESTS}/jane/approval"));
    let response = machine.put(&status, &with(json!([approved])));
    assert_eq!(
        causes(&response.body),
        ["status.conditions: Forbidden: updates may not add a condition of type \"Approved\""]
    );
    let response = machine.put(&approval, &with(json!([approved, denied])));
    assert!(causes(&response.body)[0].ends_with("Approved and Denied conditions are mutually exclusive"));
    let response = machine.put(&approval, &with(json!([approved])));
    assert_eq!(response.status, 200, "{}", response.body);
    let condition = &response.body["status"]["conditions"][0];
    assert_eq!(condition["lastTransitionTime"], condition["lastUpdateTime"]);
    assert!(condition["lastUpdateTime"].is_string());
    let response = machine.put(&approval, &with(json!([])));
    assert_eq!(
        causes(&response.body),
        ["status.conditions: Forbidden: updates may not remove a condition of type \"Approved\""]
    );
}

#[test]
fn approving_needs_the_permission_of_the_signer() {
    let mut machine = Machine::new();
    machine.server = machine.server.with_administrator("secret");
    let rules = json!([{"apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests", "certificatesigningrequests/approval"], "verbs": ["*"]}]);
    let mut send = |method: http::Method, target: &str, user: Option<&str>, body: &Value| {
        let mut request = machine.request(method, target, "application/json", body);
        request.headers.authorization = Credentials("Bearer secret".to_owned());
        request.headers.impersonation.user = user.map(str::to_owned);
        machine.send(&request)
    };
    let post = http::Method::POST;
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let mut role = json!({"metadata": {"name": "approver"}, "rules": rules});
    send(post.clone(), &format!("{rbac}/clusterroles"), None, &role);
    let binding = json!({
        "metadata": {"name": "approver"}, "subjects": [{"kind": "User", "name": "joe"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "approver"},
    });
    send(post.clone(), &format!("{rbac}/clusterrolebindings"), None, &binding);
    let created = send(post, REQUESTS, Some("joe"), &request("jane", &pem_request("jane", "developers"))).body;
    assert_eq!(created["spec"]["username"], "joe");
    let mut approved = created;
    approved["status"] = json!({"conditions": [{"type": "Approved", "status": "True"}]});
    let approval = format!("{REQUESTS}/jane/approval");
    let response = send(http::Method::PUT, &approval, Some("joe"), &approved);
    let (status, _, message) = response.failure();
    assert_eq!(status, 403);
    assert!(
        message.ends_with(
            "user not permitted to approve requests with signerName \"kubernetes.io/kube-apiserver-client\""
        )
    );
    let signers = json!({
        "apiGroups": ["certificates.k8s.io"], "resources": ["signers"], "resourceNames": ["kubernetes.io/*"],
        "verbs": ["approve"],
    });
    role["rules"].as_array_mut().expect("rules").push(signers);
    send(http::Method::PUT, &format!("{rbac}/clusterroles/approver"), None, &role);
    assert_eq!(send(http::Method::PUT, &approval, Some("joe"), &approved).status, 200);
}

#[test]
fn an_approved_request_is_signed_and_one_for_other_usages_fails() {
    let mut machine = Machine::new();
    machine.server = machine.server.with_signer(Arc::new(Recorder));
    for (name, usages) in [("jane", json!(["client auth"])), ("server", json!(["server auth"]))] {
        let mut wanted = request(name, &pem_request(name, "developers"));
        wanted["spec"]["usages"] = usages;
        wanted["spec"]["expirationSeconds"] = json!(3600);
        let mut created = machine.post(REQUESTS, &wanted).body;
        machine.advance(1_000);
        assert_eq!(machine.get(&format!("{REQUESTS}/{name}")).body["status"], json!({}), "nothing happens before");
        created["status"] = json!({"conditions": [{"type": "Approved", "status": "True"}]});
        machine.put(&format!("{REQUESTS}/{name}/approval"), &created);
        machine.advance(1_000);
    }
    let signed = machine.get(&format!("{REQUESTS}/jane")).body;
    let certificate =
        STANDARD.decode(signed["status"]["certificate"].as_str().expect("a certificate")).expect("Base64");
    let certificate = String::from_utf8(certificate).expect("text");
    assert!(certificate.ends_with("for client auth"), "{certificate}");
    let failed = machine.get(&format!("{REQUESTS}/server")).body;
    let failure = &failed["status"]["conditions"][1];
    assert_eq!((&failure["type"], &failure["reason"]), (&json!("Failed"), &json!("SignerValidationFailure")));
    assert_eq!(failure["message"], "invalid usage for client certificate: server auth");
}
