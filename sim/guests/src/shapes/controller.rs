//! One pass: observe, plan, act, report.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::Client;
use serde_json::{Value, json};

use super::crd::SHAPE;
use super::observed::ObservedShapes;
use super::ownership::{FINALIZER, OwnershipScheme};
use super::plan::{Plan, Step, plan};
use super::records::{CONFIG_MAP, NAMESPACE, RECORD_LABEL};
use super::resource::RESOURCE;
use super::resync::ResyncMode;
use crate::client::{CallError, Objects};
use crate::object::{name, text, uid};

/// Name of the ConfigMap in the cluster that lists resources whose ownership cannot be proved.
pub const REPORT: &str = "shapes-report";

/// The shapes controller.
#[derive(Clone)]
pub struct ShapesController {
    /// Client of the cluster with the shapes.
    pub cluster: Client,
    /// Client of the external API with the resources.
    pub cloud: Client,
    /// Scheme by which the controller recognizes its resources.
    pub scheme: Arc<dyn OwnershipScheme>,
    /// Occasions of a pass.
    pub resync: ResyncMode,
}

impl ShapesController {
    /// Reconciles every shape. A failure does not stop the others; the first one is returned.
    pub async fn full_pass(&self) -> Result<(), CallError> {
        let observed = self.observe().await?;
        let planned = plan(&*self.scheme, &observed);
        let executed = self.execute(&planned).await;
        self.report_leaks(&planned.leaks).await?;
        executed
    }

    /// Reconciles one shape only, which exists or was deleted.
    pub async fn single_pass(&self, shape: &Value, is_deleted: bool) -> Result<(), CallError> {
        let resource_name = self.scheme.resource_name(shape);
        let mut observed = self.observe().await?;
        observed.shapes.retain(|other| !is_deleted && uid(other) == uid(shape));
        observed.resources.retain(|resource| name(resource) == resource_name);
        observed.records.retain(|record| *record == resource_name);
        self.execute(&plan(&*self.scheme, &observed)).await
    }

    async fn observe(&self) -> Result<ObservedShapes, CallError> {
        let (resources, _) = self.resources().list("").await?;
        let (records, _) = self.records().list(RECORD_LABEL).await?;
        let (shapes, _) = Objects::in_all_namespaces(&self.cluster, SHAPE).list("").await?;
        let form = self.scheme.record_form();
        let records = records.iter().map(|record| form.read(record).to_owned()).collect();
        Ok(ObservedShapes { shapes, resources, records })
    }

    fn resources(&self) -> Objects {
        Objects::in_namespace(&self.cloud, RESOURCE, NAMESPACE)
    }

    fn records(&self) -> Objects {
        Objects::in_namespace(&self.cluster, self.scheme.record_form().kind(), NAMESPACE)
    }

    fn reports(&self) -> Objects {
        Objects::in_namespace(&self.cluster, CONFIG_MAP, NAMESPACE)
    }

    async fn execute(&self, planned: &Plan) -> Result<(), CallError> {
        let mut result = Ok(());
        for (shape, steps) in &planned.groups {
            result = result.and(self.execute_group(shape.clone(), steps).await);
        }
        result
    }

    async fn execute_group(&self, mut shape: Option<Value>, steps: &[Step]) -> Result<(), CallError> {
        for step in steps {
            match self.execute_step(&mut shape, step).await {
                Ok(()) => {}
                Err(CallError::Permanent(reason)) => {
                    // A retry does not help: the status tells the user what to change.
                    self.execute_step(&mut shape, &Step::SetStatus("Blocked", reason.clone())).await?;
                    return Err(CallError::Permanent(reason));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn execute_step(&self, shape: &mut Option<Value>, step: &Step) -> Result<(), CallError> {
        match step {
            Step::AddFinalizer => self.set_finalizer(shape, true).await,
            Step::RemoveFinalizer => self.set_finalizer(shape, false).await,
            Step::SetStatus(phase, message) => self.set_status(shape, phase, message).await,
            Step::Record(record) => match self.records().create(record).await {
                Err(CallError::Exists) => Ok(()),
                created => created.map(drop),
            },
            Step::Create(resource) => self.resources().create(resource).await.map(drop),
            Step::Update(resource) => self.resources().replace(resource).await.map(drop),
            Step::Delete(resource) => {
                accept_missing(self.resources().delete(name(resource), Some(uid(resource))).await)
            }
            Step::DeleteRecord(record) => accept_missing(self.records().delete(record, None).await),
        }
    }

    async fn set_finalizer(&self, shape: &mut Option<Value>, is_set: bool) -> Result<(), CallError> {
        let Some(shape) = shape else { return Ok(()) };
        let mut changed = shape.clone();
        let finalizers = changed.pointer("/metadata/finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
        let others = finalizers.into_iter().filter(|finalizer| finalizer != FINALIZER);
        let own = is_set.then(|| json!(FINALIZER));
        changed["metadata"]["finalizers"] = others.chain(own).collect();
        *shape = self.shapes(shape).replace(&changed).await?;
        Ok(())
    }

    async fn set_status(&self, shape: &mut Option<Value>, phase: &str, message: &str) -> Result<(), CallError> {
        let Some(shape) = shape else { return Ok(()) };
        let status = json!({"phase": phase, "message": message, "observedGeneration": shape["metadata"]["generation"]});
        if shape.get("status") != Some(&status) {
            shape["status"] = status;
            *shape = self.shapes(shape).replace_status(shape).await?;
        }
        Ok(())
    }

    fn shapes(&self, shape: &Value) -> Objects {
        Objects::in_namespace(&self.cluster, SHAPE, text(shape, "/metadata/namespace"))
    }

    /// Lists resources whose ownership cannot be proved in the ConfigMap [`REPORT`] and in the log, if the list has changed.
    async fn report_leaks(&self, leaks: &BTreeSet<String>) -> Result<(), CallError> {
        let existing = self.reports().get(REPORT).await?;
        let leaks = leaks.iter().map(String::as_str).collect::<Vec<&str>>().join(" ");
        if existing.as_ref().map(|report| text(report, "/data/leaks")).unwrap_or_default() == leaks {
            return Ok(());
        }
        tracing::warn!("resources without a shape whose ownership cannot be proved: {leaks}");
        let mut report = existing.clone().unwrap_or_else(
            || json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": REPORT, "namespace": NAMESPACE}}),
        );
        report["data"] = json!({"leaks": leaks});
        let reports = self.reports();
        let written = if existing.is_some() { reports.replace(&report).await } else { reports.create(&report).await };
        written.map(drop)
    }
}

/// Treats the deletion of an object that does not exist as a success.
fn accept_missing(deleted: Result<(), CallError>) -> Result<(), CallError> {
    match deleted {
        Err(CallError::Missing) => Ok(()),
        deleted => deleted,
    }
}
