//! LimitRange: default requests and limits of containers, and the bounds of containers, pods and claims.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sindri_cel::Quantity;

use super::pod_amounts::{pod_amounts, read_amounts};
use crate::object::fields::{array_at, metadata, string_at, value_at};
use crate::registry::resource::Resource;
use crate::storage::store::Store;

type Amounts = BTreeMap<String, Quantity>;

/// Lists of containers, with the word for one of them.
const CONTAINERS: [(&str, &str); 2] = [("/spec/containers", "container"), ("/spec/initContainers", "init container")];

/// Returns the items of all limit ranges of a namespace.
fn items(store: &Store, namespace: &str) -> Vec<Value> {
    let ranges = store.in_namespace("", "limitranges", namespace);
    ranges.flat_map(|entry| array_at(&entry.object, "/spec/limits").to_vec()).collect()
}

/// Sets the default requests and limits of a new pod's containers. Returns the violation of a bound.
pub(crate) fn apply_limit_ranges(
    store: &Store,
    namespace: &str,
    resource: &Resource,
    object: &mut Value,
) -> Option<String> {
    if resource.is("", "pods") {
        set_defaults(&items(store, namespace), object);
    }
    limit_violation(store, namespace, resource, object)
}

fn set_defaults(items: &[Value], pod: &mut Value) {
    let mut set = Vec::new();
    for item in items.iter().filter(|item| string_at(item, "/type") == "Container") {
        for (list, word) in CONTAINERS {
            let containers = pod.pointer_mut(list).and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten() {
                set.extend(limit_container(item, container, word));
            }
        }
    }
    if !set.is_empty() {
        let annotations = metadata(pod).entry("annotations").or_insert_with(|| json!({}));
        annotations["kubernetes.io/limit-ranger"] = json!(format!("LimitRanger plugin set: {}", set.join("; ")));
    }
}

/// Sets the requests and limits that a container does not specify, and describes them.
fn limit_container(item: &Value, container: &mut Value, word: &str) -> Vec<String> {
    let mut set = Vec::new();
    let own = string_at(container, "/name").to_owned();
    for (from, to, amount_type) in [("defaultRequest", "requests", "request"), ("default", "limits", "limit")] {
        let Some(defaults) = item.get(from).and_then(Value::as_object) else { continue };
        let mut names = Vec::new();
        for (name, amount) in defaults {
            // Names of resources may contain slashes, so that no JSON pointer is made of them.
            let known = container.pointer(&format!("/resources/{to}")).and_then(|amounts| amounts.get(name));
            if known.is_none() && container["resources"].is_object() {
                container["resources"][to][name] = amount.clone();
                names.push(name.as_str());
            }
        }
        if !names.is_empty() {
            set.push(format!("{} {amount_type} for {word} {own}", names.join(", ")));
        }
    }
    set
}

/// Returns the violations of the bounds of a pod or a claim.
pub(crate) fn limit_violation(store: &Store, namespace: &str, resource: &Resource, object: &Value) -> Option<String> {
    let is_claim = resource.is("", "persistentvolumeclaims");
    if !is_claim && !resource.is("", "pods") {
        return None;
    }
    let mut violations = Vec::new();
    for item in items(store, namespace) {
        let limit_type = string_at(&item, "/type");
        match limit_type {
            "PersistentVolumeClaim" if is_claim => {
                let requests = read_amounts(value_at(object, "/spec/resources/requests")).into_iter().collect();
                violations.extend(Bounded { limit_type, requests, limits: Amounts::new() }.claim_violations(&item));
            }
            "Container" if !is_claim => {
                for container in CONTAINERS.iter().flat_map(|(list, _)| array_at(object, list)) {
                    let amounts =
                        |pointer: &str| read_amounts(value_at(container, pointer)).into_iter().collect::<Amounts>();
                    let (requests, limits) = (amounts("/resources/requests"), amounts("/resources/limits"));
                    violations.extend(Bounded { limit_type, requests, limits }.violations(&item));
                }
            }
            "Pod" if !is_claim => {
                let (requests, limits) = (pod_amounts(object, "requests"), pod_amounts(object, "limits"));
                violations.extend(Bounded { limit_type, requests, limits }.violations(&item));
            }
            _ => {}
        }
        if !violations.is_empty() {
            break;
        }
    }
    match violations.len() {
        0 | 1 => violations.pop(),
        _ => Some(format!("[{}]", violations.join(", "))),
    }
}

/// Requests and limits that an item of a limit range bounds.
struct Bounded<'a> {
    limit_type: &'a str,
    requests: Amounts,
    limits: Amounts,
}

fn bounds(item: &Value, field: &str) -> Vec<(String, Quantity)> {
    read_amounts(item.get(field))
}

impl Bounded<'_> {
    fn violations(&self, item: &Value) -> Vec<String> {
        let minimums = bounds(item, "min").into_iter().filter_map(|(name, bound)| self.below(&name, bound));
        let maximums = bounds(item, "max").into_iter().filter_map(|(name, bound)| self.above(&name, bound));
        let ratios = bounds(item, "maxLimitRequestRatio");
        let ratios = ratios.into_iter().filter_map(|(name, bound)| self.above_ratio(&name, bound));
        minimums.chain(maximums).chain(ratios).collect()
    }

    /// Returns the violations of a claim, which has no limits.
    fn claim_violations(&self, item: &Value) -> Vec<String> {
        let minimums = bounds(item, "min").into_iter().filter_map(|(name, bound)| self.below(&name, bound));
        let maximums = bounds(item, "max").into_iter().filter_map(|(name, bound)| {
            let start = self.start("maximum", &name, bound);
            match self.requests.get(&name) {
                None => Some(format!("{start}.  No request is specified")),
                Some(request) if *request > bound => Some(format!("{start}, but request is {}", request.canonical())),
                Some(_) => None,
            }
        });
        minimums.chain(maximums).collect()
    }

    fn start(&self, word: &str, name: &str, bound: Quantity) -> String {
        format!("{word} {name} usage per {} is {}", self.limit_type, bound.canonical())
    }

    fn below(&self, name: &str, bound: Quantity) -> Option<String> {
        let start = self.start("minimum", name, bound);
        let Some(request) = self.requests.get(name) else { return Some(format!("{start}.  No request is specified")) };
        if *request < bound {
            return Some(format!("{start}, but request is {}", request.canonical()));
        }
        let limit = self.limits.get(name).filter(|limit| **limit < bound)?;
        Some(format!("{start}, but limit is {}", limit.canonical()))
    }

    fn above(&self, name: &str, bound: Quantity) -> Option<String> {
        let start = self.start("maximum", name, bound);
        let Some(limit) = self.limits.get(name) else { return Some(format!("{start}.  No limit is specified")) };
        if *limit > bound {
            return Some(format!("{start}, but limit is {}", limit.canonical()));
        }
        let request = self.requests.get(name).filter(|request| **request > bound)?;
        Some(format!("{start}, but request is {}", request.canonical()))
    }

    fn above_ratio(&self, name: &str, bound: Quantity) -> Option<String> {
        let start = format!("{name} max limit to request ratio per {} is {}", self.limit_type, bound.canonical());
        let positive = |amounts: &Amounts| amounts.get(name).filter(|amount| amount.signum() > 0).copied();
        let Some(request) = positive(&self.requests) else {
            return Some(format!("{start}, but no request is specified or request is 0"));
        };
        let Some(limit) = positive(&self.limits) else {
            return Some(format!("{start}, but no limit is specified or limit is 0"));
        };
        let ratio = limit.approximate() / request.approximate();
        (ratio > bound.approximate()).then(|| format!("{start}, but provided ratio is {ratio:.6}"))
    }
}
