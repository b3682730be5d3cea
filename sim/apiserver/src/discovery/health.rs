//! Health endpoints, with every check by its name if `verbose`.

use crate::http::error::ApiError;
use crate::http::request::Request;
use crate::http::response::Response;

/// Names of the checks, in the order of the output.
const CHECKS: [&str; 31] = [
    "ping",
    "log",
    "etcd",
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/priority-and-fairness-config-consumer",
    "poststarthook/priority-and-fairness-filter",
    "poststarthook/storage-object-count-tracker-hook",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/start-kube-apiserver-identity-lease-controller",
    "poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
    "poststarthook/start-legacy-token-tracking-controller",
    "poststarthook/start-service-ip-repair-controllers",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/priority-and-fairness-config-producer",
    "poststarthook/bootstrap-controller",
    "poststarthook/start-kubernetes-service-cidr-controller",
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/apiservice-status-local-available-controller",
    "poststarthook/apiservice-status-remote-available-controller",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-discovery-controller",
    "poststarthook/kube-apiserver-autoregistration",
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
];
/// Additional checks of `/readyz`, and the index of the first two.
const READINESS: [&str; 2] = ["etcd-readiness", "informer-sync"];
const READINESS_AFTER: usize = 3;

/// Responds to `/healthz`, `/livez` and `/readyz`, or to one check of them.
pub(crate) fn respond(request: &Request, endpoint: &str, check: &str) -> Result<Response, ApiError> {
    let mut checks = CHECKS.to_vec();
    if endpoint == "readyz" {
        checks.splice(READINESS_AFTER..READINESS_AFTER, READINESS);
        checks.push("shutdown");
    }
    if !check.is_empty() {
        return if checks.contains(&check) { Ok(Response::text(200, "ok")) } else { Err(ApiError::NoSuchPath) };
    }
    if !request.query.contains_key("verbose") {
        return Ok(Response::text(200, "ok"));
    }
    let excluded: Vec<&str> = request.all_values("exclude").collect();
    let line = |check: &&str| format!("[+]{check} {}\n", if excluded.contains(check) { "excluded: ok" } else { "ok" });
    let mut report: String = checks.iter().map(line).collect();
    let unknown: Vec<String> =
        excluded.iter().filter(|name| !checks.contains(name)).map(|name| format!("{name:?}")).collect();
    if !unknown.is_empty() {
        let unknown = unknown.join(",");
        report.push_str(&format!("warn: some health checks cannot be excluded: no matches for {unknown}\n"));
    }
    Ok(Response::text(200, &format!("{report}{endpoint} check passed\n")))
}
