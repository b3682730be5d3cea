//! Columns and table cells of storage, admission, certificates, budgets and other kinds of infrastructure.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::object::fields::{array_at, is_deleting, name, string_at, value_at};
use crate::printing::format::{age, selector};

/// Columns that the real server describes as whole numbers, and as truth values.
const INTEGERS: [&str; 4] = ["Allowed Disruptions", "Drivers", "Webhooks", "Validations"];
const BOOLEANS: [&str; 5] = ["Attached", "AttachRequired", "PodInfoOnMount", "StorageCapacity", "RequiresRepublish"];
/// Columns that only wide output shows.
const WIDE: [&str; 1] = ["VolumeMode"];
const NONE: &str = "<none>";
const UNSET: &str = "<unset>";

/// Returns the columns of a kind of this file, after that of the name.
fn column_names(kind: &str) -> Option<&'static [&'static str]> {
    Some(match kind {
        "PodTemplate" => &["Containers", "Images", "Pod Labels"],
        "PodDisruptionBudget" => &["Min Available", "Max Unavailable", "Allowed Disruptions", "Age"],
        "IngressClass" => &["Controller", "Parameters", "Age"],
        "PersistentVolume" => &[
            "Capacity",
            "Access Modes",
            "Reclaim Policy",
            "Status",
            "Claim",
            "StorageClass",
            "VolumeAttributesClass",
            "Reason",
            "Age",
            "VolumeMode",
        ],
        "StorageClass" => &["Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion", "Age"],
        "VolumeAttributesClass" => &["DriverName", "Age"],
        "RuntimeClass" => &["Handler", "Age"],
        "VolumeAttachment" => &["Attacher", "PV", "Node", "Attached", "Age"],
        "CSINode" => &["Drivers", "Age"],
        "CSIDriver" => &[
            "AttachRequired",
            "PodInfoOnMount",
            "StorageCapacity",
            "TokenRequests",
            "RequiresRepublish",
            "Modes",
            "Age",
        ],
        "CSIStorageCapacity" => &["StorageClassName", "Capacity"],
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => &["Webhooks", "Age"],
        "ValidatingAdmissionPolicy" => &["Validations", "ParamKind", "Age"],
        "ValidatingAdmissionPolicyBinding" => &["PolicyName", "ParamRef", "Age"],
        "CertificateSigningRequest" => &["Age", "SignerName", "Requestor", "RequestedDuration", "Condition"],
        "DeviceClass" | "ResourceClaimTemplate" => &["Age"],
        "ResourceClaim" => &["State", "Age"],
        "ResourceSlice" => &["Node", "Driver", "Pool", "Age"],
        _ => return None,
    })
}

/// Returns the columns of a kind of this file.
pub(crate) fn columns(kind: &str) -> Option<Vec<Value>> {
    let column = |name: &&str| {
        let column_type = match *name {
            name if INTEGERS.contains(&name) => "integer",
            name if BOOLEANS.contains(&name) => "boolean",
            _ => "string",
        };
        let format = if matches!(*name, "Name" | "Attacher") { "name" } else { "" };
        let priority = i32::from(WIDE.contains(name));
        json!({"name": name, "type": column_type, "format": format, "description": "", "priority": priority})
    };
    let names = column_names(kind)?;
    Some(std::iter::once(&"Name").chain(names).map(column).collect())
}

/// Returns the cells of an object, if its kind is one of this file.
pub(crate) fn row(kind: &str, now: Timestamp, object: &Value) -> Option<Vec<Value>> {
    column_names(kind)?;
    let old = json!(age(now, string_at(object, "/metadata/creationTimestamp")));
    let text = |pointer: &str| json!(string_at(object, pointer));
    let text_or = |pointer: &str, otherwise: &str| json!(non_empty(string_at(object, pointer), otherwise));
    let count = |pointer: &str| json!(array_at(object, pointer).len());
    let flag = |pointer: &str| json!(value_at(object, pointer) == Some(&json!(true)));
    let mut shown_name = name(object).to_owned();
    let cells = match kind {
        "PodTemplate" => template_cells(object),
        "PodDisruptionBudget" => vec![
            either(object, "/spec/minAvailable"),
            either(object, "/spec/maxUnavailable"),
            json!(value_at(object, "/status/disruptionsAllowed").and_then(Value::as_i64).unwrap_or_default()),
            old,
        ],
        "IngressClass" => vec![text("/spec/controller"), json!(parameters(object)), old],
        "PersistentVolume" => volume_cells(object, old),
        "StorageClass" => {
            shown_name = storage_class_name(object);
            let policy = text_or("/reclaimPolicy", "Delete");
            let mode = text_or("/volumeBindingMode", "Immediate");
            vec![text("/provisioner"), policy, mode, flag("/allowVolumeExpansion"), old]
        }
        "VolumeAttributesClass" => vec![text("/driverName"), old],
        "RuntimeClass" => vec![text("/handler"), old],
        "VolumeAttachment" => {
            let volume = text("/spec/source/persistentVolumeName");
            vec![text("/spec/attacher"), volume, text("/spec/nodeName"), flag("/status/attached"), old]
        }
        "CSINode" => vec![count("/spec/drivers"), old],
        "CSIDriver" => driver_cells(object, old),
        "CSIStorageCapacity" => vec![text("/storageClassName"), text_or("/capacity", UNSET)],
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => vec![count("/webhooks"), old],
        "ValidatingAdmissionPolicy" => {
            let kind = object.pointer("/spec/paramKind");
            let kind = kind.map(|kind| format!("{}/{}", string_at(kind, "/apiVersion"), string_at(kind, "/kind")));
            vec![count("/spec/validations"), json!(kind.unwrap_or_else(|| UNSET.to_owned())), old]
        }
        "ValidatingAdmissionPolicyBinding" => vec![text("/spec/policyName"), json!(parameter_name(object)), old],
        "CertificateSigningRequest" => {
            let seconds = value_at(object, "/spec/expirationSeconds").and_then(Value::as_i64);
            let start = now.checked_sub(SignedDuration::from_secs(seconds.unwrap_or_default())).unwrap_or(now);
            let duration = seconds.map(|_| age(now, &start.to_string()));
            let duration = json!(duration.unwrap_or_else(|| NONE.to_owned()));
            let signer = text_or("/spec/signerName", NONE);
            vec![old, signer, text("/spec/username"), duration, json!(request_state(object))]
        }
        "ResourceClaim" => vec![json!(claim_state(object)), old],
        "ResourceSlice" => vec![text("/spec/nodeName"), text("/spec/driver"), text("/spec/pool/name"), old],
        _ => vec![old],
    };
    Some(std::iter::once(json!(shown_name)).chain(cells).collect())
}

fn non_empty<'a>(text: &'a str, otherwise: &'a str) -> &'a str {
    if text.is_empty() { otherwise } else { text }
}

/// Returns a number or a percentage of a budget.
fn either(budget: &Value, pointer: &str) -> Value {
    match value_at(budget, pointer) {
        Some(Value::String(percentage)) => json!(percentage),
        Some(Value::Number(number)) => json!(number.to_string()),
        _ => json!("N/A"),
    }
}

fn template_cells(object: &Value) -> Vec<Value> {
    let containers = array_at(object, "/template/spec/containers");
    let joined = |field: &str| json!(containers.iter().map(|one| string_at(one, field)).collect::<Vec<_>>().join(","));
    let labels = json!({"matchLabels": object.pointer("/template/metadata/labels")});
    vec![joined("/name"), joined("/image"), json!(selector(Some(&labels)))]
}

fn parameters(class: &Value) -> String {
    let Some(parameters) = class.pointer("/spec/parameters") else { return NONE.to_owned() };
    let group = string_at(parameters, "/apiGroup");
    let group = if group.is_empty() { String::new() } else { format!(".{group}") };
    format!("{}{group}/{}", string_at(parameters, "/kind"), string_at(parameters, "/name"))
}

fn volume_cells(volume: &Value, old: Value) -> Vec<Value> {
    let text = |pointer: &str| json!(string_at(volume, pointer));
    let claim = volume.pointer("/spec/claimRef");
    let claim = claim.map(|claim| format!("{}/{}", string_at(claim, "/namespace"), string_at(claim, "/name")));
    let phase = if is_deleting(volume) { json!("Terminating") } else { text("/status/phase") };
    let unset = |pointer: &str| json!(non_empty(string_at(volume, pointer), UNSET));
    vec![
        json!(non_empty(string_at(volume, "/spec/capacity/storage"), "0")),
        json!(access_modes(array_at(volume, "/spec/accessModes"))),
        text("/spec/persistentVolumeReclaimPolicy"),
        phase,
        json!(claim.unwrap_or_default()),
        text("/spec/storageClassName"),
        unset("/spec/volumeAttributesClassName"),
        text("/status/reason"),
        old,
        unset("/spec/volumeMode"),
    ]
}

/// Returns access modes in short form.
fn access_modes(modes: &[Value]) -> String {
    let short =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let present = short.into_iter().filter(|(mode, _)| modes.iter().any(|other| other == mode));
    present.map(|(_, short)| short).collect::<Vec<_>>().join(",")
}

fn storage_class_name(class: &Value) -> String {
    let annotations = class.pointer("/metadata/annotations");
    let is_default =
        ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"]
            .iter()
            .any(|key| annotations.and_then(|annotations| annotations.get(*key)) == Some(&json!("true")));
    if is_default { format!("{} (default)", name(class)) } else { name(class).to_owned() }
}

fn driver_cells(driver: &Value, old: Value) -> Vec<Value> {
    let flag =
        |field: &str, otherwise: bool| json!(driver["spec"].get(field).and_then(Value::as_bool).unwrap_or(otherwise));
    let requests = driver.pointer("/spec/tokenRequests").and_then(Value::as_array);
    let audiences = requests
        .map(|requests| requests.iter().map(|request| string_at(request, "/audience")).collect::<Vec<_>>().join(","));
    let modes: Vec<&str> = array_at(driver, "/spec/volumeLifecycleModes").iter().filter_map(Value::as_str).collect();
    vec![
        flag("attachRequired", true),
        flag("podInfoOnMount", false),
        flag("storageCapacity", false),
        json!(audiences.unwrap_or_else(|| UNSET.to_owned())),
        flag("requiresRepublish", false),
        json!(non_empty(&modes.join(","), NONE)),
        old,
    ]
}

fn parameter_name(binding: &Value) -> String {
    let Some(reference) = binding.pointer("/spec/paramRef") else { return UNSET.to_owned() };
    match (string_at(reference, "/name"), string_at(reference, "/namespace")) {
        ("", _) => reference.get("selector").map_or_else(|| UNSET.to_owned(), |labels| selector(Some(labels))),
        (name, "") => format!("*/{name}"),
        (name, namespace) => format!("{namespace}/{name}"),
    }
}

/// Returns the state of a certificate signing request.
fn request_state(request: &Value) -> String {
    let has = |kind: &str| array_at(request, "/status/conditions").iter().any(|one| one["type"] == kind);
    let decision = ["Denied", "Approved"].into_iter().find(|decision| has(decision)).unwrap_or("Pending");
    let failed = if has("Failed") { ",Failed" } else { "" };
    let issued = if string_at(request, "/status/certificate").is_empty() { "" } else { ",Issued" };
    format!("{decision}{failed}{issued}")
}

fn claim_state(claim: &Value) -> String {
    let mut states = Vec::new();
    if is_deleting(claim) {
        states.push("deleted");
    }
    if claim.pointer("/status/allocation").is_some() {
        states.push("allocated");
        if !array_at(claim, "/status/reservedFor").is_empty() {
            states.push("reserved");
        }
    } else if !is_deleting(claim) {
        states.push("pending");
    }
    states.join(",")
}
