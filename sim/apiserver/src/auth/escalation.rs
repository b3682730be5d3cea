//! Escalation: a user may grant only permissions that the user has, unless a role permits more.

use serde_json::{Value, json};

use super::authorization_request::AuthorizationRequest;
use super::rbac::{GROUP, find_permission, rules_for};
use super::user::User;
use crate::http::error::ApiError;
use crate::object::fields::{array_at, string_at, value_at};
use crate::registry::resource::Resource;
use crate::storage::store::Store;

/// Write of a role or a binding.
pub(crate) struct RbacWrite<'a> {
    pub(crate) user: &'a User,
    pub(crate) resource: &'a Resource,
    /// Empty for cluster roles and their bindings.
    pub(crate) namespace: &'a str,
    /// Empty if the path has no name.
    pub(crate) requested_name: &'a str,
    pub(crate) name: &'a str,
    pub(crate) object: &'a Value,
}

impl RbacWrite<'_> {
    /// Returns an error if the write grants permissions that the user does not have.
    pub(crate) fn check_escalation(&self, store: &Store) -> Result<(), ApiError> {
        if self.resource.group != GROUP || self.user.is_master() {
            return Ok(());
        }
        match self.resource.plural.as_str() {
            "roles" | "clusterroles" => self.check_role(store),
            _ => self.check_binding(store),
        }
    }

    fn check_role(&self, store: &Store) -> Result<(), ApiError> {
        if self.is_permitted(store, "escalate", &self.resource.plural, self.requested_name) {
            return Ok(());
        }
        self.check_rules(store, array_at(self.object, "/rules"))?;
        if value_at(self.object, "/aggregationRule").is_none_or(Value::is_null) {
            return Ok(());
        }
        let everything = [
            json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}),
            json!({"nonResourceURLs": ["*"], "verbs": ["*"]}),
        ];
        self.check_rules(store, &everything)
            .map_err(|_| self.forbid("must have cluster-admin privileges to use the aggregationRule"))
    }

    fn check_binding(&self, store: &Store) -> Result<(), ApiError> {
        let role = string_at(self.object, "/roleRef/name");
        let (plural, namespace) = match string_at(self.object, "/roleRef/kind") {
            "ClusterRole" => ("clusterroles", None),
            _ => ("roles", Some(self.namespace)),
        };
        if self.is_permitted(store, "bind", plural, role) {
            return Ok(());
        }
        let Some(granted) = store.find(GROUP, plural, namespace, role) else {
            // The real server names the resource of the request, with the name of the role.
            return Err(ApiError::not_found(self.resource, role));
        };
        self.check_rules(store, array_at(granted, "/rules"))
    }

    fn is_permitted(&self, store: &Store, verb: &str, plural: &str, name: &str) -> bool {
        let request = AuthorizationRequest {
            verb: verb.to_owned(),
            group: GROUP.to_owned(),
            resource: plural.to_owned(),
            namespace: self.namespace.to_owned(),
            name: name.to_owned(),
            ..AuthorizationRequest::default()
        };
        find_permission(store, self.user, &request).is_some()
    }

    /// Returns an error unless the user has all permissions of the rules.
    fn check_rules(&self, store: &Store, rules: &[Value]) -> Result<(), ApiError> {
        let own: Vec<Permissions> =
            rules_for(store, self.user, self.namespace).iter().map(Permissions::from_rule).collect();
        let granted = rules.iter().map(Permissions::from_rule).flat_map(|rule| rule.single_permissions());
        let missing = granted.filter(|single| !own.iter().any(|rule| rule.covers(single))).collect();
        let mut missing: Vec<String> = join_verbs(missing).iter().map(Permissions::to_text).collect();
        if missing.is_empty() {
            return Ok(());
        }
        missing.sort();
        missing.dedup();
        Err(self.forbid(&format!(
            "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            self.user.name,
            quoted(&self.user.groups),
            missing.join("\n")
        )))
    }

    fn forbid(&self, reason: &str) -> ApiError {
        ApiError::forbidden(self.resource, self.name, reason)
    }
}

/// Permissions of one rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Permissions {
    groups: Vec<String>,
    resources: Vec<String>,
    paths: Vec<String>,
    names: Vec<String>,
    verbs: Vec<String>,
}

impl Permissions {
    fn from_rule(rule: &Value) -> Self {
        let list = |pointer: &str| {
            array_at(rule, pointer).iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
        };
        Self {
            groups: list("/apiGroups"),
            resources: list("/resources"),
            paths: list("/nonResourceURLs"),
            names: list("/resourceNames"),
            verbs: list("/verbs"),
        }
    }

    /// Returns each combination of a verb with a resource or a path as a rule of its own.
    fn single_permissions(&self) -> Vec<Self> {
        let mut single = Vec::new();
        let names: Vec<Vec<String>> = match self.names.as_slice() {
            [] => vec![Vec::new()],
            names => names.iter().map(|name| vec![name.clone()]).collect(),
        };
        for group in &self.groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    single.extend(names.iter().map(|names| Self {
                        groups: vec![group.clone()],
                        resources: vec![resource.clone()],
                        names: names.clone(),
                        verbs: vec![verb.clone()],
                        ..Self::default()
                    }));
                }
            }
        }
        for path in &self.paths {
            single.extend(self.verbs.iter().map(|verb| Self {
                paths: vec![path.clone()],
                verbs: vec![verb.clone()],
                ..Self::default()
            }));
        }
        single
    }

    /// True if this rule includes a rule with one combination.
    fn covers(&self, single: &Self) -> bool {
        let has = |own: &[String], wanted: &[String]| {
            own.iter().any(|value| value == "*") || wanted.iter().all(|value| own.contains(value))
        };
        let has_resource = |wanted: &String| {
            let of_any = wanted.split_once('/').map(|(_, subresource)| format!("*/{subresource}"));
            of_any.is_some_and(|of_any| self.resources.contains(&of_any))
        };
        let has_path = |wanted: &String| {
            let covers = |own: &String| own.strip_suffix('*').is_some_and(|start| wanted.starts_with(start));
            self.paths.contains(wanted) || self.paths.iter().any(covers)
        };
        has(&self.verbs, &single.verbs)
            && has(&self.groups, &single.groups)
            && (has(&self.resources, &single.resources) || single.resources.iter().all(has_resource))
            && (self.names.is_empty()
                || !single.names.is_empty() && single.names.iter().all(|name| self.names.contains(name)))
            && single.paths.iter().all(has_path)
    }

    fn to_text(&self) -> String {
        let parts = [
            ("APIGroups", &self.groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.paths),
            ("ResourceNames", &self.names),
            ("Verbs", &self.verbs),
        ];
        let parts = parts.iter().filter(|(_, values)| !values.is_empty());
        let parts: Vec<String> = parts.map(|(name, values)| format!("{name}:{}", quoted(values))).collect();
        format!("{{{}}}", parts.join(", "))
    }
}

/// Joins the verbs of combinations with the same resource.
fn join_verbs(single: Vec<Permissions>) -> Vec<Permissions> {
    let mut joined: Vec<Permissions> = Vec::new();
    for mut rule in single {
        let is_same = |other: &&mut Permissions| {
            other.paths.is_empty()
                && (&other.groups, &other.resources, &other.names) == (&rule.groups, &rule.resources, &rule.names)
        };
        match joined.iter_mut().find(is_same) {
            Some(known) if rule.paths.is_empty() => known.verbs.append(&mut rule.verbs),
            _ => joined.push(rule),
        }
    }
    joined
}

/// Returns texts as Go prints a list of them.
fn quoted(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", texts.join(" "))
}
