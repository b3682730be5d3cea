//! What the server decides about an object after its fields were given to their managers: the first status, finalizers,
//! addresses, and what admission adds to pods. Nobody owns any of it.

use serde_json::{Map, Value, json};

use crate::object::field_error::FieldError;
use crate::object::fields::{list, metadata, name, stamp, text, uid};
use crate::registry::resource::Resource;
use crate::server::ApiServer;
use crate::strategy::validation::service::is_reachable_from_outside;
use sindri_cel::Quantity;

/// The range from which services get ports on nodes.
const FIRST_NODE_PORT: u32 = 30_000;
const NODE_PORTS: u32 = 2_768;
/// The number of the address that services get which are only tried.
const TRIED_ADDRESS: u32 = 60_000;
/// The same for ports.
const TRIED_PORT: u32 = 2_000;
/// Where pods find the token of their account.
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

impl ApiServer {
    /// Prepares a new object. The error says why admission refuses it.
    pub(crate) fn prepare_new(
        &mut self,
        now: jiff::Timestamp,
        resource: &Resource,
        object: &mut Value,
    ) -> Result<(), String> {
        if resource.custom {
            return Ok(());
        }
        match resource.kind.as_str() {
            "Namespace" => {
                let mut own = list(object, "/spec/finalizers").to_vec();
                if !own.iter().any(|finalizer| finalizer == "kubernetes") {
                    own.push(json!("kubernetes"));
                }
                object["spec"] = json!({ "finalizers": own });
                object["status"] = json!({"phase": "Active"});
            }
            "Pod" => {
                object["status"] = json!({"phase": "Pending", "qosClass": quality(object)});
                self.admit_pod(object)?;
            }
            "Service" => {
                object["status"] = json!({"loadBalancer": {}});
                self.give_addresses(None, object);
            }
            "DaemonSet" => count_templates(&Value::Null, object),
            "Job" => label_job(object),
            "PersistentVolumeClaim" => {
                object["status"] = json!({"phase": "Pending"});
                add_finalizer(object, "kubernetes.io/pvc-protection");
            }
            "PersistentVolume" => {
                object["status"] = json!({"phase": "Pending", "lastPhaseTransitionTime": stamp(now)});
                add_finalizer(object, "kubernetes.io/pv-protection");
            }
            "Node" => {
                let taint = json!({"effect": "NoSchedule", "key": "node.kubernetes.io/not-ready"});
                if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
                    let taints = spec.entry("taints").or_insert_with(|| json!([]));
                    taints.as_array_mut().into_iter().for_each(|taints| taints.push(taint.clone()));
                }
            }
            "CustomResourceDefinition" => {
                let stored = storage_versions(object);
                object["status"] =
                    json!({"conditions": [], "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored});
            }
            _ => {}
        }
        Ok(())
    }

    /// Prepares an object that replaces another.
    pub(crate) fn prepare_change(&mut self, resource: &Resource, live: &Value, object: &mut Value) {
        if resource.custom {
            return;
        }
        match resource.kind.as_str() {
            "Service" => self.give_addresses(Some(live), object),
            "DaemonSet" => count_templates(live, object),
            "CustomResourceDefinition" => {
                let added: Vec<Value> = storage_versions(object);
                if let Some(known) = object.pointer_mut("/status/storedVersions").and_then(Value::as_array_mut) {
                    let new: Vec<Value> = added.into_iter().filter(|version| !known.contains(version)).collect();
                    known.extend(new);
                }
            }
            "Namespace" => object["spec"] = live["spec"].clone(),
            _ => {}
        }
    }

    /// What is only tried gets an address and ports that nobody else does; tells what was given before.
    pub(crate) fn given_for(&mut self, dry_run: bool) -> Option<(u32, u32)> {
        dry_run.then(|| {
            let given = (self.addresses, self.node_ports);
            (self.addresses, self.node_ports) = (TRIED_ADDRESS, TRIED_PORT);
            given
        })
    }

    /// Takes back what was given to something that was only tried.
    pub(crate) fn take_back(&mut self, given: Option<(u32, u32)>) {
        if let Some(given) = given {
            (self.addresses, self.node_ports) = given;
        }
    }

    fn give_addresses(&mut self, live: Option<&Value>, service: &mut Value) {
        let kind = text(service, "/spec/type").to_owned();
        if !service.get("spec").is_some_and(Value::is_object) {
            return;
        }
        if kind == "ExternalName" {
            let was_another = live.is_some_and(|live| text(live, "/spec/type") != "ExternalName");
            if let (true, Some(spec)) = (was_another, service["spec"].as_object_mut()) {
                for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"] {
                    spec.remove(field);
                }
            }
            return;
        }
        // A client that replaces the object need not know its address.
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort"] {
            let selects = service["spec"].get("selector").and_then(Value::as_object).is_some_and(|all| !all.is_empty());
            if let (true, Some(known)) =
                (service["spec"].get(field).is_none(), live.and_then(|live| live["spec"].get(field)))
                && !(field == "ipFamilies" && selects && known.as_array().is_some_and(|known| known.len() > 1))
            {
                service["spec"][field] = known.clone();
            }
        }
        if text(service, "/spec/clusterIP").is_empty() {
            service["spec"]["clusterIP"] = self.next_address();
        }
        if let Some(live) = live {
            agree_on_addresses(live, service);
        }
        let address = service["spec"]["clusterIP"].clone();
        let spec = &mut service["spec"];
        // Without a selector nobody knows of which families the addresses of a headless service will be.
        let open = address == "None" && spec.get("selector").and_then(Value::as_object).is_none_or(Map::is_empty);
        let (families, policy) = match text(spec, "/ipFamilyPolicy") {
            "" if open => (json!(["IPv4", "IPv6"]), json!("RequireDualStack")),
            "PreferDualStack" if open => (json!(["IPv4", "IPv6"]), json!("PreferDualStack")),
            _ => (json!(["IPv4"]), json!("SingleStack")),
        };
        let defaults = [("clusterIPs", json!([address])), ("ipFamilies", families), ("ipFamilyPolicy", policy)];
        for (field, value) in defaults {
            if spec.get(field).is_none_or(Value::is_null) {
                spec[field] = value;
            }
        }
        if text(spec, "/ipFamilyPolicy") == "SingleStack" {
            for field in ["ipFamilies", "clusterIPs"] {
                spec.get_mut(field).and_then(Value::as_array_mut).into_iter().for_each(|list| list.truncate(1));
            }
        }
        if matches!(kind.as_str(), "NodePort" | "LoadBalancer") && spec["allocateLoadBalancerNodePorts"] != false {
            self.give_ports(live, spec);
        }
        if let Some(live) = live {
            drop_what_the_type_had(live, service);
        }
    }

    /// Gives the containers of a pod what limits say, or says why it is too much.
    pub(crate) fn over_limits(&self, namespace: &str, resource: &Resource, pod: &mut Value) -> Option<String> {
        if !resource.is("", "pods") {
            return None;
        }
        let shelf = self.store.shelf("", "limitranges").into_iter().flat_map(|shelf| shelf.values());
        let here = shelf.filter(|entry| entry.key.namespace.as_deref() == Some(namespace));
        let items: Vec<Value> = here.flat_map(|entry| list(&entry.object, "/spec/limits").to_vec()).collect();
        let mut set = Vec::new();
        for item in items.iter().filter(|item| text(item, "/type") == "Container") {
            let containers = pod.pointer_mut("/spec/containers").and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten() {
                set.extend(limit_container(item, container));
                if let Some(why) = above(item, container) {
                    return Some(why);
                }
            }
        }
        if !set.is_empty() {
            let annotations = metadata(pod).entry("annotations").or_insert_with(|| json!({}));
            annotations["kubernetes.io/limit-ranger"] = json!(format!("LimitRanger plugin set: {}", set.join("; ")));
        }
        None
    }

    /// A port on nodes that a changed service has twice; the real server does not expect it.
    pub(crate) fn port_given_twice(resource: &Resource, service: &Value) -> Option<String> {
        if !resource.is("", "services") {
            return None;
        }
        let identity = |port: &Value| (text(port, "/protocol").to_owned(), port.get("nodePort").cloned());
        let ports: Vec<_> = list(service, "/spec/ports").iter().map(identity).collect();
        let twice = ports.iter().enumerate().find(|(at, port)| port.1.is_some() && ports[..*at].contains(port));
        let (protocol, number) = twice?.1;
        Some(format!("duplicate nodePort: {{{protocol} {}}}", number.clone().unwrap_or_default()))
    }

    /// What is wrong with the addresses and ports that a service asks for.
    pub(crate) fn allocation_mistakes(&self, resource: &Resource, service: &Value) -> Vec<FieldError> {
        if !resource.is("", "services") {
            return Vec::new();
        }
        let own = uid(service);
        // Looked at only for a service that asks for something: there may be thousands.
        let others = || {
            let shelf = self.store.shelf("", "services").into_iter().flat_map(|shelf| shelf.values());
            shelf.map(|entry| &***entry.object).filter(|other| uid(other) != own)
        };
        let mut errors = Vec::new();
        let address = text(service, "/spec/clusterIP");
        if let Ok(parsed) = address.parse::<std::net::Ipv4Addr>() {
            let [first, second, ..] = parsed.octets();
            let taken = others().any(|other| text(other, "/spec/clusterIP") == address);
            let why = if first != 10 || !(96..112).contains(&second) {
                Some("the provided IP is not in the valid range. The range of valid IPs is 10.96.0.0/12")
            } else {
                taken.then_some("provided IP is already allocated")
            };
            if let Some(why) = why {
                let why = format!("failed to allocate IP {address}: {why}");
                errors.push(FieldError::invalid("spec.clusterIPs", &json!([address]), &why));
            }
        }
        for (index, port) in list(service, "/spec/ports").iter().enumerate() {
            let Some(number) = port.get("nodePort").and_then(Value::as_u64) else { continue };
            let (first, last) = (u64::from(FIRST_NODE_PORT), u64::from(FIRST_NODE_PORT + NODE_PORTS - 1));
            let is_taken = |other: &Value| list(other, "/spec/ports").iter().any(|other| other["nodePort"] == number);
            let why = if (first..=last).contains(&number) {
                others().any(is_taken).then(|| "provided port is already allocated".to_owned())
            } else {
                Some(format!("provided port is not in the valid range. The range of valid ports is {first}-{last}"))
            };
            if let Some(why) = why {
                errors.push(FieldError::invalid(format!("spec.ports[{index}].nodePort"), &json!(number), &why));
            }
        }
        errors.extend(family_mistakes(service));
        errors
    }

    fn give_ports(&mut self, live: Option<&Value>, spec: &mut Value) {
        let known: Vec<Value> = live.map(|live| list(live, "/spec/ports").to_vec()).unwrap_or_default();
        let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
        let ports: Vec<&mut Value> = ports.into_iter().flatten().collect();
        let asked: Vec<&Value> = ports.iter().filter_map(|port| port.get("nodePort")).collect();
        let mut used: Vec<Value> = known.iter().filter_map(|port| port.get("nodePort")).cloned().collect();
        used.retain(|number| asked.contains(&number));
        let mut taken: Vec<(Value, Value, Value)> = Vec::new();
        for port in ports {
            if port.get("nodePort").is_none() {
                // A port is known by its name, whatever else of it changed; of two without a name the last is.
                let same = known.iter().rev().find(|other| other.get("name") == port.get("name"));
                let same = same.and_then(|same| same.get("nodePort")).filter(|number| !used.contains(number)).cloned();
                // One number serves another protocol of the same port too.
                let shared = taken.iter().filter(|_| live.is_none()).find(|(number, protocol, node)| {
                    let twice = taken.iter().any(|other| other.1 == port["protocol"] && other.2 == *node);
                    *number == port["port"] && *protocol != port["protocol"] && !twice
                });
                let given = same.or(shared.map(|(_, _, node)| node.clone()));
                port["nodePort"] = given.unwrap_or_else(|| {
                    self.node_ports += 1;
                    json!(FIRST_NODE_PORT + 1 + self.node_ports % (NODE_PORTS - 1))
                });
            }
            taken.push((port["port"].clone(), port["protocol"].clone(), port["nodePort"].clone()));
        }
        if text(spec, "/externalTrafficPolicy") == "Local"
            && text(spec, "/type") == "LoadBalancer"
            && spec.get("healthCheckNodePort").is_none()
        {
            self.node_ports += 1;
            spec["healthCheckNodePort"] = json!(FIRST_NODE_PORT + 1 + self.node_ports % (NODE_PORTS - 1));
        }
    }

    /// What admission adds to every pod: an account with its token, a priority, patience with nodes.
    fn admit_pod(&mut self, pod: &mut Value) -> Result<(), String> {
        let namespace = text(pod, "/metadata/namespace").to_owned();
        let suffix = self.ids.name_suffix();
        let Some(spec) = pod.get_mut("spec").filter(|spec| spec.is_object()) else { return Ok(()) };
        let account = match text(spec, "/serviceAccountName") {
            "" => "default".to_owned(),
            account => account.to_owned(),
        };
        if self.admits_accounts {
            if self.get("", "serviceaccounts", Some(&namespace), &account).is_none() {
                return Err(format!(
                    "error looking up service account {namespace}/{account}: serviceaccount {account:?} not found"
                ));
            }
            spec["serviceAccountName"] = json!(account);
            spec["serviceAccount"] = json!(account);
        }
        if spec.get("priority").is_none() {
            spec["priority"] = json!(0);
        }
        if spec.get("preemptionPolicy").is_none() {
            spec["preemptionPolicy"] = json!("PreemptLowerPriority");
        }
        if self.admits_accounts && spec.get("automountServiceAccountToken") != Some(&json!(false)) {
            mount_token(spec, &format!("kube-api-access-{suffix}"));
        }
        for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
            let toleration = json!({"effect": "NoExecute", "key": key, "operator": "Exists", "tolerationSeconds": 300});
            let known = list(spec, "/tolerations").iter().any(|known| text(known, "/key") == key);
            if !known {
                push(spec, "tolerations", toleration);
            }
        }
        Ok(())
    }
}

/// A cluster with one family of addresses has no others, except where nobody knows whose they are.
fn family_mistakes(service: &Value) -> Vec<FieldError> {
    let spec = service.get("spec").unwrap_or(&Value::Null);
    let selects = spec.get("selector").and_then(Value::as_object).is_some_and(|selector| !selector.is_empty());
    if text(spec, "/clusterIP") == "None" && !selects {
        return Vec::new();
    }
    let mut errors = Vec::new();
    for (index, family) in list(spec, "/ipFamilies").iter().enumerate().filter(|(_, family)| *family == "IPv6") {
        let why = "not configured on this cluster";
        errors.push(FieldError::invalid(format!("spec.ipFamilies[{index}]"), family, why));
    }
    let policy = text(spec, "/ipFamilyPolicy");
    if policy == "RequireDualStack" {
        let why = "this cluster is not configured for dual-stack services";
        errors.push(FieldError::invalid("spec.ipFamilyPolicy", &json!(policy), why));
    }
    errors
}

/// A client may change either form of the address; the other follows.
fn agree_on_addresses(live: &Value, service: &mut Value) {
    let one = |service: &Value| service["spec"].get("clusterIP").cloned().unwrap_or_default();
    let many = |service: &Value| service["spec"].get("clusterIPs").cloned().unwrap_or_default();
    let (changed_one, changed_many) = (one(service) != one(live), many(service) != many(live));
    if changed_one && !changed_many {
        service["spec"]["clusterIPs"] = json!([one(service)]);
    } else if changed_many && !changed_one && !many(service)[0].is_null() {
        service["spec"]["clusterIP"] = many(service)[0].clone();
    }
}

/// How often the template of a daemon set changed is in an annotation of old, which nobody else decides.
fn count_templates(live: &Value, object: &mut Value) {
    const COUNT: &str = "deprecated.daemonset.template.generation";
    let known = live["metadata"]["annotations"].get(COUNT).and_then(Value::as_str);
    let known: u64 = known.and_then(|count| count.parse().ok()).unwrap_or_default();
    let changed = live.pointer("/spec/template") != object.pointer("/spec/template");
    let annotations = metadata(object).entry("annotations").or_insert_with(|| json!({}));
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(COUNT.to_owned(), json!((known + u64::from(changed)).to_string()));
    }
}

/// Takes away what another type of the same service had, unless it was asked for again.
fn drop_what_the_type_had(live: &Value, service: &mut Value) {
    let has_ports = |service: &Value| matches!(text(service, "/spec/type"), "NodePort" | "LoadBalancer");
    let is_balanced = |service: &Value| text(service, "/spec/type") == "LoadBalancer";
    let numbers = |service: &Value| -> Vec<Value> {
        list(service, "/spec/ports").iter().filter_map(|port| port.get("nodePort").cloned()).collect()
    };
    let known = numbers(live);
    if has_ports(live) && !has_ports(service) && numbers(service).iter().all(|number| known.contains(number)) {
        let ports = service.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
        for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
            port.remove("nodePort");
        }
    }
    let same = |service: &Value, field: &str| service["spec"].get(field) == live["spec"].get(field);
    let mut gone = Vec::new();
    if is_balanced(live) && !is_balanced(service) {
        gone.extend(["allocateLoadBalancerNodePorts", "healthCheckNodePort", "loadBalancerClass"]);
    }
    if is_reachable_from_outside(&live["spec"]) && !is_reachable_from_outside(&service["spec"]) {
        gone.push("externalTrafficPolicy");
    }
    for field in gone {
        if let (true, Some(spec)) = (same(service, field), service["spec"].as_object_mut()) {
            spec.remove(field);
        }
    }
    if !is_balanced(service) && service.pointer("/status/loadBalancer/ingress").is_some() && is_balanced(live) {
        service["status"]["loadBalancer"] = json!({});
    }
}

/// Fills in what a container does not say, and tells what that was.
fn limit_container(item: &Value, container: &mut Value) -> Vec<String> {
    let mut set = Vec::new();
    let own = text(container, "/name").to_owned();
    for (from, to, word) in [("defaultRequest", "requests", "request"), ("default", "limits", "limit")] {
        let Some(defaults) = item.get(from).and_then(Value::as_object) else { continue };
        for (name, amount) in defaults {
            if container.pointer(&format!("/resources/{to}/{name}")).is_none() && container["resources"].is_object() {
                container["resources"][to][name] = amount.clone();
                set.push(format!("{name} {word} for container {own}"));
            }
        }
    }
    set
}

/// What of a container is above a maximum.
fn above(item: &Value, container: &Value) -> Option<String> {
    let most = item.get("max").and_then(Value::as_object)?;
    most.iter().find_map(|(name, most)| {
        let most = Quantity::parse(most.as_str()?)?;
        let limit = Quantity::parse(text(container, &format!("/resources/limits/{name}")))?;
        (limit > most).then(|| {
            let (most, limit) = (most.canonical(), limit.canonical());
            format!("maximum {name} usage per Container is {most}, but limit is {limit}")
        })
    })
}

fn push(map: &mut Value, field: &str, element: Value) {
    if let Some(map) = map.as_object_mut() {
        let list = map.entry(field).or_insert_with(|| json!([]));
        list.as_array_mut().into_iter().for_each(|list| list.push(element.clone()));
    }
}

fn mount_token(spec: &mut Value, volume: &str) {
    let mount = json!({"mountPath": TOKEN_PATH, "name": volume, "readOnly": true});
    for containers in ["containers", "initContainers"] {
        let containers = spec.get_mut(containers).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let mounted = list(container, "/volumeMounts").iter().any(|mount| text(mount, "/mountPath") == TOKEN_PATH);
            if !mounted {
                push(container, "volumeMounts", mount.clone());
            }
        }
    }
    let namespace = json!({"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}, "path": "namespace"});
    let sources = json!([
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
        {"downwardAPI": {"items": [namespace]}},
    ]);
    push(spec, "volumes", json!({"name": volume, "projected": {"defaultMode": 420, "sources": sources}}));
}

/// How a pod is treated when there is not enough: by whether its containers ask for what they may have.
fn quality(pod: &Value) -> &'static str {
    let containers = ["/spec/containers", "/spec/initContainers"].map(|pointer| list(pod, pointer)).concat();
    let amounts = |container: &Value, of: &str| -> Map<String, Value> {
        let all =
            container.pointer(&format!("/resources/{of}")).and_then(Value::as_object).cloned().unwrap_or_default();
        all.into_iter().filter(|(name, amount)| matches!(name.as_str(), "cpu" | "memory") && amount != "0").collect()
    };
    let nothing =
        |container: &Value| amounts(container, "limits").is_empty() && amounts(container, "requests").is_empty();
    if containers.iter().all(nothing) {
        return "BestEffort";
    }
    let whole = |container: &Value| {
        let limits = amounts(container, "limits");
        limits.len() == 2 && limits == amounts(container, "requests")
    };
    if containers.iter().all(whole) { "Guaranteed" } else { "Burstable" }
}

/// A job selects its pods by its own identity.
fn label_job(job: &mut Value) {
    if job.pointer("/spec/manualSelector") == Some(&json!(true)) {
        return;
    }
    let (identity, own) = (uid(job).to_owned(), name(job).to_owned());
    let labels = [
        ("batch.kubernetes.io/controller-uid", identity.clone()),
        ("batch.kubernetes.io/job-name", own.clone()),
        ("controller-uid", identity.clone()),
        ("job-name", own),
    ];
    let Some(spec) = job.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    spec["selector"] = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": identity}});
    if let Some(template) = spec.get_mut("template").filter(|template| template.is_object()) {
        let own = metadata(template).entry("labels").or_insert_with(|| json!({}));
        labels.iter().for_each(|(key, value)| own[*key] = json!(value));
    }
    let own = metadata(job).entry("labels").or_insert_with(|| json!({}));
    if own.is_object() {
        labels.iter().for_each(|(key, value)| own[*key] = json!(value));
    }
}

fn add_finalizer(object: &mut Value, finalizer: &str) {
    let finalizers = metadata(object).entry("finalizers").or_insert_with(|| json!([]));
    if let Some(finalizers) = finalizers.as_array_mut().filter(|known| !known.iter().any(|known| known == finalizer)) {
        finalizers.push(json!(finalizer));
    }
}

fn storage_versions(definition: &Value) -> Vec<Value> {
    let stored = |version: &&Value| version.get("storage") == Some(&json!(true));
    list(definition, "/spec/versions")
        .iter()
        .filter(stored)
        .filter_map(|version| version.get("name").cloned())
        .collect()
}
