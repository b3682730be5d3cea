//! The level `baseline`: no known escalation of privileges. Left out: Windows host processes and AppArmor annotations.

use serde_json::{Value, json};

use super::subjects::{containers, context, list, names_of, offenders, pod_context, quoted, sorted_set, violation};
use crate::object::fields::{array_at, string_at, value_at};

const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];
const SELINUX_TYPES: [&str; 5] = ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];
const SYSCTLS: [&str; 11] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
];

/// Returns the violations of a pod. The level `restricted` replaces some of the checks by stricter ones.
pub(super) fn violations(pod: &Value, is_whole: bool) -> Vec<String> {
    let only_baseline = |check: fn(&Value) -> Option<String>| if is_whole { check(pod) } else { None };
    [
        app_armor(pod),
        only_baseline(capabilities),
        host_namespaces(pod),
        only_baseline(host_paths),
        host_ports(pod),
        probe_hosts(pod),
        privileged(pod),
        proc_mount(pod),
        selinux(pod),
        only_baseline(seccomp),
        sysctls(pod),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn app_armor(pod: &Value) -> Option<String> {
    let is_unconfined = |profile: Option<&Value>| profile.is_some_and(|profile| profile["type"] == "Unconfined");
    let names = names_of(pod, |container| is_unconfined(context(container, "appArmorProfile")));
    let subject = offenders(is_unconfined(pod_context(pod, "appArmorProfile")), &names)?;
    Some(violation(
        "forbidden AppArmor profile",
        &format!("{subject} must not set AppArmor profile type to \"Unconfined\""),
    ))
}

fn capabilities(pod: &Value) -> Option<String> {
    let forbidden = |container: &Value| -> Vec<String> {
        let added = array_at(container, "/securityContext/capabilities/add").iter().filter_map(Value::as_str);
        added.filter(|name| !CAPABILITIES.contains(name)).map(str::to_owned).collect()
    };
    let names = names_of(pod, |container| !forbidden(container).is_empty());
    let all: Vec<String> = containers(pod).flat_map(forbidden).collect();
    let all = sorted_set(all.iter().map(String::as_str));
    (!names.is_empty()).then(|| {
        let detail = format!(
            "{} must not include {} in securityContext.capabilities.add",
            list("container", &names),
            quoted(&all)
        );
        violation("non-default capabilities", &detail)
    })
}

fn host_namespaces(pod: &Value) -> Option<String> {
    let used = ["hostNetwork", "hostPID", "hostIPC"].iter().filter(|field| pod["spec"][**field] == json!(true));
    let used: Vec<String> = used.map(|field| format!("{field}=true")).collect();
    (!used.is_empty()).then(|| violation("host namespaces", &used.join(", ")))
}

fn host_paths(pod: &Value) -> Option<String> {
    let volumes = array_at(pod, "/spec/volumes").iter().filter(|volume| volume.get("hostPath").is_some());
    let names: Vec<&str> = volumes.map(|volume| string_at(volume, "/name")).collect();
    (!names.is_empty()).then(|| violation("hostPath volumes", &list("volume", &names)))
}

fn host_ports(pod: &Value) -> Option<String> {
    let ports_of = |container: &Value| -> Vec<String> {
        let ports = array_at(container, "/ports").iter().filter_map(|port| port.get("hostPort")?.as_u64());
        ports.filter(|port| *port != 0).map(|port| port.to_string()).collect()
    };
    let names = names_of(pod, |container| !ports_of(container).is_empty());
    let all: Vec<String> = containers(pod).flat_map(ports_of).collect();
    let all = sorted_set(all.iter().map(String::as_str));
    let verb = if names.len() == 1 { "uses" } else { "use" };
    let noun = if all.len() == 1 { "hostPort" } else { "hostPorts" };
    (!names.is_empty())
        .then(|| violation("hostPort", &format!("{} {verb} {noun} {}", list("container", &names), all.join(", "))))
}

fn probe_hosts(pod: &Value) -> Option<String> {
    let hosts_of = |container: &Value| -> Vec<String> {
        let actions =
            ["/livenessProbe", "/readinessProbe", "/startupProbe", "/lifecycle/postStart", "/lifecycle/preStop"];
        let hosts = actions.iter().flat_map(|action| {
            ["httpGet", "tcpSocket"].map(|handler| string_at(container, &format!("{action}/{handler}/host")).to_owned())
        });
        hosts.filter(|host| !host.is_empty()).collect()
    };
    let names = names_of(pod, |container| !hosts_of(container).is_empty());
    let all: Vec<String> = containers(pod).flat_map(hosts_of).collect();
    let all = sorted_set(all.iter().map(String::as_str));
    let verb = if names.len() == 1 { "uses" } else { "use" };
    let noun = if all.len() == 1 { "host" } else { "hosts" };
    (!names.is_empty()).then(|| {
        let detail = format!("{} {verb} probe or lifecycle {noun} {}", list("container", &names), quoted(&all));
        violation("probe or lifecycle host", &detail)
    })
}

fn privileged(pod: &Value) -> Option<String> {
    let names = names_of(pod, |container| context(container, "privileged") == Some(&json!(true)));
    let subject = offenders(false, &names)?;
    Some(violation("privileged", &format!("{subject} must not set securityContext.privileged=true")))
}

fn proc_mount(pod: &Value) -> Option<String> {
    let is_bad = |container: &Value| context(container, "procMount").is_some_and(|mount| mount != "Default");
    let names = names_of(pod, is_bad);
    let subject = offenders(false, &names)?;
    let mounts = containers(pod).filter(|container| is_bad(container));
    let mounts = sorted_set(mounts.map(|container| string_at(container, "/securityContext/procMount")));
    Some(violation("procMount", &format!("{subject} must not set securityContext.procMount to {}", quoted(&mounts))))
}

fn selinux(pod: &Value) -> Option<String> {
    let options_of = |options: Option<&Value>| options.cloned().unwrap_or_default();
    let is_bad = |options: &Value| {
        !SELINUX_TYPES.contains(&string_at(options, "/type"))
            || ["user", "role"].iter().any(|field| !string_at(options, &format!("/{field}")).is_empty())
    };
    let names = names_of(pod, |container| is_bad(&options_of(context(container, "seLinuxOptions"))));
    let own = options_of(pod_context(pod, "seLinuxOptions"));
    let subject = offenders(is_bad(&own), &names)?;
    let all: Vec<Value> = std::iter::once(own)
        .chain(containers(pod).map(|container| options_of(context(container, "seLinuxOptions"))))
        .collect();
    let types =
        sorted_set(all.iter().map(|options| string_at(options, "/type")).filter(|one| !SELINUX_TYPES.contains(one)));
    let mut reasons = Vec::new();
    if !types.is_empty() {
        reasons.push(list("type", &types));
    }
    for field in ["user", "role"] {
        if all.iter().any(|options| !string_at(options, &format!("/{field}")).is_empty()) {
            reasons.push(format!("{field} may not be set"));
        }
    }
    let detail = format!("{subject} set forbidden securityContext.seLinuxOptions: {}", reasons.join("; "));
    Some(violation("seLinuxOptions", &detail))
}

fn seccomp(pod: &Value) -> Option<String> {
    let is_unconfined = |profile: Option<&Value>| profile.is_some_and(|profile| profile["type"] == "Unconfined");
    let names = names_of(pod, |container| is_unconfined(context(container, "seccompProfile")));
    let subject = offenders(is_unconfined(pod_context(pod, "seccompProfile")), &names)?;
    let detail = format!("{subject} must not set securityContext.seccompProfile.type to \"Unconfined\"");
    Some(violation("seccompProfile", &detail))
}

fn sysctls(pod: &Value) -> Option<String> {
    let all = value_at(pod, "/spec/securityContext/sysctls").and_then(Value::as_array).into_iter().flatten();
    let forbidden = all.map(|sysctl| string_at(sysctl, "/name")).filter(|name| !SYSCTLS.contains(name));
    let forbidden: Vec<&str> = forbidden.collect();
    (!forbidden.is_empty()).then(|| violation("forbidden sysctls", &forbidden.join(", ")))
}
