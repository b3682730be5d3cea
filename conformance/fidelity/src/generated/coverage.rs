//! Which verbs were asked of which kinds, how often, and how often with success.

use std::collections::BTreeMap;

use serde_json::Value;

/// What was asked of what.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asked {
    /// The resource as its path names it, with its subresource.
    pub kind: String,
    /// The verb; patches by their type.
    pub verb: String,
}

/// How often something was asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// How often.
    pub asked: u64,
    /// How often with success.
    pub succeeded: u64,
    /// How often the answers differ.
    pub differs: u64,
}

/// Everything that was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage(pub BTreeMap<Asked, Count>);

impl Coverage {
    /// Counts the steps of the real server.
    pub fn add(&mut self, steps: &[Value], differing: &[usize]) {
        for (index, step) in steps.iter().enumerate() {
            let Some(request) = step.get("request") else { continue };
            let count = self.0.entry(asked(request)).or_default();
            count.asked += 1;
            count.differs += u64::from(differing.contains(&(index + 1)));
            let status = step.pointer("/response/status").and_then(Value::as_u64).unwrap_or_default();
            count.succeeded += u64::from((200..300).contains(&status));
        }
    }

    /// The sum over everything.
    #[must_use]
    pub fn total(&self) -> Count {
        let mut total = Count::default();
        for count in self.0.values() {
            total.asked += count.asked;
            total.succeeded += count.succeeded;
            total.differs += count.differs;
        }
        total
    }

    /// Every verb, in the order of their names.
    #[must_use]
    pub fn verbs(&self) -> Vec<&str> {
        let mut verbs: Vec<&str> = self.0.keys().map(|asked| asked.verb.as_str()).collect();
        verbs.sort_unstable();
        verbs.dedup();
        verbs
    }

    /// Every kind, in the order of their names.
    #[must_use]
    pub fn kinds(&self) -> Vec<&str> {
        let mut kinds: Vec<&str> = self.0.keys().map(|asked| asked.kind.as_str()).collect();
        kinds.dedup();
        kinds
    }
}

/// What a request asks.
#[must_use]
pub fn asked(request: &Value) -> Asked {
    let text = |pointer: &str| request.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (path, query) = text("/path").split_once('?').unwrap_or((text("/path"), ""));
    let (kind, named) = resource(path);
    let watches = query.split('&').any(|part| matches!(part, "watch=true" | "watch=1"));
    let verb = match text("/method") {
        "GET" if watches => "watch",
        "GET" if named => "get",
        "GET" => "list",
        "POST" => "create",
        "PUT" => "update",
        "DELETE" if named => "delete",
        "DELETE" => "deletecollection",
        "PATCH" => patch(text("/headers/Content-Type")),
        "" => "read",
        _ => "other",
    };
    Asked { kind, verb: verb.to_owned() }
}

fn patch(content_type: &str) -> &'static str {
    match content_type {
        "application/apply-patch+yaml" => "apply",
        "application/json-patch+json" => "json-patch",
        "application/merge-patch+json" => "merge-patch",
        "application/strategic-merge-patch+json" => "strategic-patch",
        _ => "other-patch",
    }
}

/// The resource that a path is about, and whether it names one object.
fn resource(path: &str) -> (String, bool) {
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
    fn requests_are_told_by_verb_and_kind() {
        let said = |method: &str, path: &str, kind: &str| {
            let asked = asked(&json!({"method": method, "path": path, "headers": {"Content-Type": kind}}));
            format!("{} {}", asked.verb, asked.kind)
        };
        assert_eq!(said("GET", "/api/v1/namespaces/a/pods/b", ""), "get pods");
        assert_eq!(said("GET", "/api/v1/namespaces/a", ""), "get namespaces");
        assert_eq!(said("GET", "/api/v1/namespaces/a/pods?watch=true", ""), "watch pods");
        assert_eq!(said("DELETE", "/apis/apps/v1/namespaces/a/deployments", ""), "deletecollection deployments");
        let apply = "application/apply-patch+yaml";
        assert_eq!(said("PATCH", "/apis/apps/v1/namespaces/a/deployments/b/status", apply), "apply deployments/status");
        assert_eq!(said("PUT", "/api/v1/namespaces/a/status", ""), "update namespaces/status");
    }
}
