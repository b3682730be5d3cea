//! Number of requests by resource and verb, with successes and differences.

use std::collections::BTreeMap;

use serde_json::Value;

/// Resource and verb of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourceVerb {
    /// Resource as in its path, with its subresource.
    pub resource: String,
    /// Verb; patches by their type.
    pub verb: String,
}

/// Number of requests of one resource and verb.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Number of requests.
    pub requests: u64,
    /// Number of requests with a 2xx status.
    pub succeeded: u64,
    /// Number of requests whose responses differ.
    pub differs: u64,
}

/// Counts of all requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage(pub BTreeMap<ResourceVerb, Count>);

impl Coverage {
    /// Counts the steps of the real server.
    pub fn add(&mut self, steps: &[Value], differing: &[usize]) {
        for (index, step) in steps.iter().enumerate() {
            let Some(request) = step.get("request") else { continue };
            let count = self.0.entry(ResourceVerb::from_request(request)).or_default();
            count.requests += 1;
            count.differs += u64::from(differing.contains(&(index + 1)));
            let status = step.pointer("/response/status").and_then(Value::as_u64).unwrap_or_default();
            count.succeeded += u64::from((200..300).contains(&status));
        }
    }

    /// Returns the sum of all counts.
    #[must_use]
    pub fn total(&self) -> Count {
        let mut total = Count::default();
        for count in self.0.values() {
            total.requests += count.requests;
            total.succeeded += count.succeeded;
            total.differs += count.differs;
        }
        total
    }

    /// Returns all verbs, sorted.
    #[must_use]
    pub fn verbs(&self) -> Vec<&str> {
        let mut verbs: Vec<&str> = self.0.keys().map(|key| key.verb.as_str()).collect();
        verbs.sort_unstable();
        verbs.dedup();
        verbs
    }

    /// Returns all resources, sorted.
    #[must_use]
    pub fn resources(&self) -> Vec<&str> {
        let mut resources: Vec<&str> = self.0.keys().map(|key| key.resource.as_str()).collect();
        resources.dedup();
        resources
    }
}

impl ResourceVerb {
    /// Returns the resource and the verb of a recorded request.
    #[must_use]
    pub fn from_request(request: &Value) -> Self {
        let text = |pointer: &str| request.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (path, query) = text("/path").split_once('?').unwrap_or((text("/path"), ""));
        let (resource, is_named) = parse_path(path);
        let watches = query.split('&').any(|part| matches!(part, "watch=true" | "watch=1"));
        let verb = match text("/method") {
            "GET" if watches => "watch",
            "GET" if is_named => "get",
            "GET" => "list",
            "POST" => "create",
            "PUT" => "update",
            "DELETE" if is_named => "delete",
            "DELETE" => "deletecollection",
            "PATCH" => patch_verb(text("/headers/Content-Type")),
            "" => "read",
            _ => "other",
        };
        Self { resource, verb: verb.to_owned() }
    }
}

fn patch_verb(content_type: &str) -> &'static str {
    match content_type {
        "application/apply-patch+yaml" => "apply",
        "application/json-patch+json" => "json-patch",
        "application/merge-patch+json" => "merge-patch",
        "application/strategic-merge-patch+json" => "strategic-patch",
        _ => "other-patch",
    }
}

/// Returns the resource of a path, and true if it names one object.
fn parse_path(path: &str) -> (String, bool) {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let rest = match parts.as_slice() {
        ["api", "v1", rest @ ..] | ["apis", _, _, rest @ ..] => rest,
        _ => return (path.to_owned(), false),
    };
    match rest {
        ["namespaces", _, plural] if !matches!(*plural, "status" | "finalize") => ((*plural).to_owned(), false),
        ["namespaces", _, plural, _] => ((*plural).to_owned(), true),
        ["namespaces", _, plural, _, part @ ..] => (format!("{plural}/{}", part.join("/")), true),
        [plural] => ((*plural).to_owned(), false),
        [plural, _] => ((*plural).to_owned(), true),
        [plural, _, part @ ..] => (format!("{plural}/{}", part.join("/")), true),
        [] => (path.to_owned(), false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn requests_are_classified_by_verb_and_resource() {
        let classify = |method: &str, path: &str, content_type: &str| {
            let request = json!({"method": method, "path": path, "headers": {"Content-Type": content_type}});
            let ResourceVerb { resource, verb } = ResourceVerb::from_request(&request);
            format!("{verb} {resource}")
        };
        assert_eq!(classify("GET", "/api/v1/namespaces/a/pods/b", ""), "get pods");
        assert_eq!(classify("GET", "/api/v1/namespaces/a", ""), "get namespaces");
        assert_eq!(classify("GET", "/api/v1/namespaces/a/pods?watch=true", ""), "watch pods");
        assert_eq!(classify("DELETE", "/apis/apps/v1/namespaces/a/deployments", ""), "deletecollection deployments");
        let apply = "application/apply-patch+yaml";
        assert_eq!(
            classify("PATCH", "/apis/apps/v1/namespaces/a/deployments/b/status", apply),
            "apply deployments/status"
        );
        assert_eq!(classify("PUT", "/api/v1/namespaces/a/status", ""), "update namespaces/status");
    }
}
