//! Job.

use serde_json::{Value, json};

use crate::object::field_error::FieldError;
use crate::object::fields::{metadata, name, string_at, uid};
use crate::object::label_selectors::matches_selector;
use crate::registry::types::SchemaType;
use crate::strategy::checks::immutability::check_immutable;
use crate::strategy::checks::jobs::validate_job_spec;
use crate::strategy::checks::names::label_name_errors;
use crate::strategy::checks::workloads::{UNSELECTED_TEMPLATE, creation_warnings, template_warnings};
use crate::strategy::default_values::{map_field, set_default, set_default_in};
use crate::strategy::{EmptyValue, PrepareContext, Strategy};

/// Warning of a delete without a propagation policy.
const KEPT_PODS: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";

/// Label with the UID of the job, by which it selects its pods.
const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";

pub(super) struct Job;

impl Strategy for Job {
    fn set_defaults(&self, _schema_type: &SchemaType, object: &mut Value) {
        let Some(spec) = map_field(object, "spec") else { return };
        let unset = |spec: &Value, name: &str| spec.get(name).is_none_or(Value::is_null);
        if unset(spec, "completions") && unset(spec, "parallelism") {
            set_default(spec, "completions", json!(1));
        }
        set_default(spec, "parallelism", json!(1));
        let backoff_limit = if unset(spec, "backoffLimitPerIndex") { 6 } else { i32::MAX };
        set_default(spec, "backoffLimit", json!(backoff_limit));
        set_default(spec, "completionMode", json!("NonIndexed"));
        set_default(spec, "suspend", json!(false));
        set_default(spec, "manualSelector", json!(false));
        let policy = if unset(spec, "podFailurePolicy") { "TerminatingOrFailed" } else { "Failed" };
        set_default(spec, "podReplacementPolicy", json!(policy));
    }

    fn prepare_for_create(&self, _context: &mut PrepareContext<'_>, object: &mut Value) {
        set_selector_and_labels(object);
        set_own_labels(object);
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = check_generated_selector(object);
        errors.extend(validate_job_spec(object.get("spec").unwrap_or(&Value::Null), "spec"));
        errors.extend(check_selector(object));
        errors.extend(check_host_name(object));
        errors
    }

    fn validate_update(&self, live: &Value, object: &Value, _empty_values: &[EmptyValue]) -> Vec<FieldError> {
        let mut errors: Vec<FieldError> = check_completions(live, object).into_iter().collect();
        errors.extend(check_immutable("spec.selector", "/spec/selector", live, object));
        errors.extend(check_immutable("spec.template", "/spec/template", &with_mutable_parts(live, object), object));
        let fields = ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"];
        errors.extend(
            fields
                .into_iter()
                .filter_map(|field| check_immutable(&format!("spec.{field}"), &format!("/spec/{field}"), live, object)),
        );
        errors
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        template_warnings(object)
    }

    fn creation_warnings(&self, object: &Value) -> Vec<String> {
        creation_warnings(object, self.warnings(object))
    }

    fn orphans_dependents_by_default(&self) -> bool {
        true
    }

    fn default_propagation_warning(&self) -> Option<&'static str> {
        Some(KEPT_PODS)
    }
}

/// Returns the labels that the server gives to the pods of a job.
fn generated_labels(job: &Value) -> [(&'static str, Value); 4] {
    let (identity, own) = (json!(uid(job)), json!(name(job)));
    [
        (CONTROLLER_UID, identity.clone()),
        ("batch.kubernetes.io/job-name", own.clone()),
        ("controller-uid", identity),
        ("job-name", own),
    ]
}

fn has_manual_selector(job: &Value) -> bool {
    job.pointer("/spec/manualSelector") == Some(&json!(true))
}

/// Sets the selector and the labels of the pods of a Job from its UID and name. Validation rejects others.
fn set_selector_and_labels(job: &mut Value) {
    if has_manual_selector(job) {
        return;
    }
    let labels = generated_labels(job);
    let Some(spec) = job.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    set_default_in(spec, "selector", "matchLabels", json!({}));
    set_default(&mut spec["selector"]["matchLabels"], CONTROLLER_UID, labels[0].1.clone());
    if let Some(template) = spec.get_mut("template").filter(|template| template.is_object()) {
        let own = metadata(template).entry("labels").or_insert_with(|| json!({}));
        labels.iter().for_each(|(key, value)| set_default(own, key, value.clone()));
    }
}

/// Gives a Job without labels those of its pods.
fn set_own_labels(job: &mut Value) {
    let labels = job.pointer("/spec/template/metadata/labels").filter(|labels| labels.is_object()).cloned();
    let own = metadata(job).get("labels").and_then(Value::as_object);
    if let (Some(labels), true) = (labels, own.is_none_or(serde_json::Map::is_empty)) {
        metadata(job).insert("labels".to_owned(), labels);
    }
}

/// Checks that selector and labels are those of the server, unless the client asks for its own.
fn check_generated_selector(job: &Value) -> Vec<FieldError> {
    let selector = job.pointer("/spec/selector").filter(|selector| !selector.is_null());
    let Some(selector) = selector.filter(|_| !has_manual_selector(job)) else { return Vec::new() };
    let expected = generated_labels(job);
    let found = job.pointer("/spec/template/metadata/labels");
    let mut errors = Vec::new();
    for (key, value) in [&expected[2], &expected[3], &expected[0], &expected[1]] {
        let field = format!("spec.template.metadata.labels[{key}]");
        let detail = format!("must be '{}'", value.as_str().unwrap_or_default());
        match found.map(|labels| (labels, labels.get(*key))) {
            Some((_, Some(other))) if other == value => {}
            Some((labels, Some(_))) => errors.push(FieldError::invalid(field, labels, &detail)),
            _ => errors.push(FieldError::required(field, &detail)),
        }
    }
    let labels: Value = expected.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    if !matches_selector(Some(selector), &json!({"metadata": {"labels": labels}})) {
        errors.push(FieldError::invalid("spec.selector", selector, "`selector` not auto-generated"));
    }
    errors
}

fn check_selector(job: &Value) -> Vec<FieldError> {
    let selector = job.pointer("/spec/selector").filter(|selector| !selector.is_null());
    let mut errors = Vec::new();
    if selector.is_none() {
        errors.push(FieldError::required("spec.selector", ""));
    }
    let template = job.pointer("/spec/template").unwrap_or(&Value::Null);
    if !matches_selector(selector, template) {
        let labels = template.pointer("/metadata/labels").cloned().unwrap_or_default();
        errors.push(FieldError::invalid("spec.template.metadata.labels", &labels, UNSELECTED_TEMPLATE));
    }
    errors
}

/// Checks the host name of the last pod of an indexed job.
fn check_host_name(job: &Value) -> Option<FieldError> {
    let completions =
        job.pointer("/spec/completions").and_then(Value::as_i64).filter(|completions| *completions > 0)?;
    let host_name = format!("{}-{}", name(job), completions - 1);
    let is_indexed = string_at(job, "/spec/completionMode") == "Indexed";
    let is_invalid = is_indexed && !label_name_errors(&host_name).is_empty();
    let detail = format!("will not able to create pod with invalid DNS label: {host_name}");
    is_invalid.then(|| FieldError::invalid("metadata.name", &json!(name(job)), &detail))
}

/// Checks the completions, which only an indexed job may change, together with its parallelism.
fn check_completions(live: &Value, job: &Value) -> Option<FieldError> {
    if string_at(job, "/spec/completionMode") != "Indexed" {
        return check_immutable("spec.completions", "/spec/completions", live, job);
    }
    let completions = job["spec"].get("completions").filter(|completions| completions.is_i64())?;
    let is_forbidden =
        live["spec"].get("completions") != Some(completions) && job["spec"].get("parallelism") != Some(completions);
    let detail = "can only be modified in tandem with spec.parallelism";
    is_forbidden.then(|| FieldError::invalid("spec.completions", completions, detail))
}

/// Returns a live job with those parts of the new template that may change before its first start.
fn with_mutable_parts(live: &Value, job: &Value) -> Value {
    let is_startable =
        live.pointer("/spec/suspend") == Some(&json!(true)) && live.pointer("/status/startTime").is_none();
    let mut live = live.clone();
    if !is_startable {
        return live;
    }
    let parts: [(&str, &[&str]); 3] = [
        ("/spec/template/spec", &["nodeSelector", "tolerations", "schedulingGates"]),
        ("/spec/template/spec/affinity", &["nodeAffinity"]),
        ("/spec/template/metadata", &["annotations", "labels"]),
    ];
    for (pointer, fields) in parts {
        let Some(holder) = live.pointer_mut(pointer).and_then(Value::as_object_mut) else { continue };
        for field in fields {
            match job.pointer(&format!("{pointer}/{field}")) {
                Some(value) => drop(holder.insert((*field).to_owned(), value.clone())),
                None => drop(holder.remove(*field)),
            }
        }
    }
    live
}
