//! The level `restricted`: the hardening of pods that is current best practice.

use serde_json::{Value, json};

use super::subjects::{containers, context, list, names_of, offenders, pod_context, quoted, sorted_set, violation};
use crate::object::fields::{array_at, string_at};

const VOLUME_TYPES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

/// Returns the violations of a pod, beside those of the level `baseline`.
pub(super) fn violations(pod: &Value) -> Vec<String> {
    [privilege_escalation(pod), capabilities(pod), volumes(pod), run_as_non_root(pod), run_as_user(pod), seccomp(pod)]
        .into_iter()
        .flatten()
        .collect()
}

fn privilege_escalation(pod: &Value) -> Option<String> {
    let names = names_of(pod, |container| context(container, "allowPrivilegeEscalation") != Some(&json!(false)));
    let subject = offenders(false, &names)?;
    let detail = format!("{subject} must set securityContext.allowPrivilegeEscalation=false");
    Some(violation("allowPrivilegeEscalation != false", &detail))
}

fn capabilities(pod: &Value) -> Option<String> {
    let drops_all =
        |container: &Value| array_at(container, "/securityContext/capabilities/drop").contains(&json!("ALL"));
    let added = |container: &Value| -> Vec<String> {
        let added = array_at(container, "/securityContext/capabilities/add").iter().filter_map(Value::as_str);
        added.filter(|name| *name != "NET_BIND_SERVICE").map(str::to_owned).collect()
    };
    let mut details = Vec::new();
    let names = names_of(pod, |container| !drops_all(container));
    if !names.is_empty() {
        details.push(format!("{} must set securityContext.capabilities.drop=[\"ALL\"]", list("container", &names)));
    }
    let names = names_of(pod, |container| !added(container).is_empty());
    if !names.is_empty() {
        let all: Vec<String> = containers(pod).flat_map(added).collect();
        let all = quoted(&sorted_set(all.iter().map(String::as_str)));
        let subject = list("container", &names);
        details.push(format!("{subject} must not include {all} in securityContext.capabilities.add"));
    }
    (!details.is_empty()).then(|| violation("unrestricted capabilities", &details.join("; ")))
}

fn volumes(pod: &Value) -> Option<String> {
    let volume_type = |volume: &Value| {
        let mut types = volume.as_object().into_iter().flatten().map(|(field, _)| field.clone());
        types.find(|field| field != "name" && !VOLUME_TYPES.contains(&field.as_str()))
    };
    let volumes = array_at(pod, "/spec/volumes");
    let names: Vec<&str> = volumes
        .iter()
        .filter(|volume| volume_type(volume).is_some())
        .map(|volume| string_at(volume, "/name"))
        .collect();
    let types: Vec<String> = volumes.iter().filter_map(volume_type).collect();
    let types = sorted_set(types.iter().map(String::as_str));
    let verb = if names.len() == 1 { "uses" } else { "use" };
    (!names.is_empty()).then(|| {
        let detail = format!("{} {verb} {}", list("volume", &names), list("restricted volume type", &types));
        violation("restricted volume types", &detail)
    })
}

fn run_as_non_root(pod: &Value) -> Option<String> {
    let reason = "runAsNonRoot != true";
    let own = pod_context(pod, "runAsNonRoot");
    let names = names_of(pod, |container| context(container, "runAsNonRoot") == Some(&json!(false)));
    // A pod's value counts only for containers without one.
    if let Some(subject) = offenders(own == Some(&json!(false)), &names) {
        return Some(violation(reason, &format!("{subject} must not set securityContext.runAsNonRoot=false")));
    }
    let names = names_of(pod, |container| context(container, "runAsNonRoot").is_none());
    (own.is_none() && !names.is_empty()).then(|| {
        let subject = list("container", &names);
        violation(reason, &format!("pod or {subject} must set securityContext.runAsNonRoot=true"))
    })
}

fn run_as_user(pod: &Value) -> Option<String> {
    let is_root = |user: Option<&Value>| user == Some(&json!(0));
    let names = names_of(pod, |container| is_root(context(container, "runAsUser")));
    let subject = offenders(is_root(pod_context(pod, "runAsUser")), &names)?;
    Some(violation("runAsUser=0", &format!("{subject} must not set runAsUser=0")))
}

fn seccomp(pod: &Value) -> Option<String> {
    let reason = "seccompProfile";
    let is_bad = |profile: Option<&Value>| {
        profile.is_some_and(|profile| !matches!(string_at(profile, "/type"), "RuntimeDefault" | "Localhost"))
    };
    let own = pod_context(pod, "seccompProfile");
    let names = names_of(pod, |container| is_bad(context(container, "seccompProfile")));
    if let Some(subject) = offenders(is_bad(own), &names) {
        let profiles = containers(pod).map(|container| context(container, "seccompProfile")).chain([own]);
        let types: Vec<&str> =
            profiles.filter(|profile| is_bad(*profile)).flatten().map(|profile| string_at(profile, "/type")).collect();
        let types = quoted(&sorted_set(types.into_iter()));
        let detail = format!("{subject} must not set securityContext.seccompProfile.type to {types}");
        return Some(violation(reason, &detail));
    }
    let names = names_of(pod, |container| context(container, "seccompProfile").is_none());
    (own.is_none() && !names.is_empty()).then(|| {
        let subject = list("container", &names);
        let detail = format!(
            "pod or {subject} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\""
        );
        violation(reason, &detail)
    })
}
