//! One pass: look, plan, carry out, report.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::Client;
use serde_json::{Value, json};

use super::definition::{PLACE, RECORD_LABEL, SHAPE, THING, record};
use super::plan::{Plan, Step, View, plan};
use super::run::Sight;
use super::scheme::{FINALIZER, Scheme};
use crate::client::{Failure, Objects, name, text, uid};

/// The ConfigMap in the cluster that says which things seem to have leaked.
pub const REPORT: &str = "shapes-report";

/// The controller.
#[derive(Clone)]
pub struct Shapes {
    /// Where the declarations are.
    pub cluster: Client,
    /// Where the things are.
    pub cloud: Client,
    /// Which of them are ours.
    pub scheme: Arc<dyn Scheme>,
    /// When it looks.
    pub sight: Sight,
}

impl Shapes {
    /// Looks at everything and puts it right. What fails does not stop the rest; the first failure is returned.
    pub async fn full_pass(&self) -> Result<(), Failure> {
        let view = self.look().await?;
        let planned = plan(&*self.scheme, &view);
        let done = self.carry_out(&planned).await;
        self.report(&planned.leaks).await?;
        done
    }

    /// Looks at one declaration only, which is there or gone.
    pub async fn narrow_pass(&self, declaration: &Value, is_gone: bool) -> Result<(), Failure> {
        let called = self.scheme.thing_name(declaration);
        let mut view = self.look().await?;
        view.declarations.retain(|found| !is_gone && uid(found) == uid(declaration));
        view.things.retain(|thing| name(thing) == called);
        view.records.retain(|thing| *thing == called);
        self.carry_out(&plan(&*self.scheme, &view)).await
    }

    async fn look(&self) -> Result<View, Failure> {
        let (things, _) = self.things().list("").await?;
        let (records, _) = self.records().list(RECORD_LABEL).await?;
        let (declarations, _) = Objects::everywhere(&self.cluster, SHAPE).list("").await?;
        let records = records.iter().map(|record| text(record, "/data/thing").to_owned()).collect();
        Ok(View { declarations, things, records })
    }

    fn things(&self) -> Objects {
        Objects::within(&self.cloud, THING, PLACE)
    }

    fn records(&self) -> Objects {
        Objects::within(&self.cluster, THING, PLACE)
    }

    async fn carry_out(&self, planned: &Plan) -> Result<(), Failure> {
        let mut ended = Ok(());
        for (declaration, steps) in &planned.groups {
            ended = ended.and(self.carry_out_group(declaration.clone(), steps).await);
        }
        ended
    }

    async fn carry_out_group(&self, mut declaration: Option<Value>, steps: &[Step]) -> Result<(), Failure> {
        for step in steps {
            match self.step(&mut declaration, step).await {
                Ok(()) => {}
                Err(Failure::Permanent(words)) => {
                    // It will not work until someone changes something; they have to be told what.
                    self.step(&mut declaration, &Step::Tell("Blocked", words.clone())).await?;
                    return Err(Failure::Permanent(words));
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    async fn step(&self, declaration: &mut Option<Value>, step: &Step) -> Result<(), Failure> {
        match step {
            Step::Hold => self.set_held(declaration, true).await,
            Step::Release => self.set_held(declaration, false).await,
            Step::Tell(phase, words) => self.tell(declaration, phase, words).await,
            Step::Record(thing) => match self.records().create(&record(thing)).await {
                Err(Failure::Exists) => Ok(()),
                recorded => recorded.map(drop),
            },
            Step::Create(thing) => self.things().create(thing).await.map(drop),
            Step::Update(thing) => self.things().replace(thing).await.map(drop),
            Step::Remove(thing) => gone(self.things().delete(name(thing), Some(uid(thing))).await),
            Step::Forget(record) => gone(self.records().delete(record, None).await),
        }
    }

    async fn set_held(&self, declaration: &mut Option<Value>, is_held: bool) -> Result<(), Failure> {
        let Some(declaration) = declaration else { return Ok(()) };
        let mut changed = declaration.clone();
        let held = changed.pointer("/metadata/finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
        let others = held.into_iter().filter(|finalizer| finalizer != FINALIZER);
        let ours = is_held.then(|| json!(FINALIZER));
        changed["metadata"]["finalizers"] = others.chain(ours).collect();
        *declaration = self.declarations(declaration).replace(&changed).await?;
        Ok(())
    }

    async fn tell(&self, declaration: &mut Option<Value>, phase: &str, words: &str) -> Result<(), Failure> {
        let Some(declaration) = declaration else { return Ok(()) };
        let status =
            json!({"phase": phase, "message": words, "observedGeneration": declaration["metadata"]["generation"]});
        if declaration.get("status") != Some(&status) {
            declaration["status"] = status;
            *declaration = self.declarations(declaration).replace_status(declaration).await?;
        }
        Ok(())
    }

    fn declarations(&self, declaration: &Value) -> Objects {
        Objects::within(&self.cluster, SHAPE, text(declaration, "/metadata/namespace"))
    }

    /// Says which things seem to have leaked, where people look and in the log; only if it is news.
    async fn report(&self, leaks: &BTreeSet<String>) -> Result<(), Failure> {
        let told = self.records().get(REPORT).await?;
        let leaks = leaks.iter().map(String::as_str).collect::<Vec<&str>>().join(" ");
        if told.as_ref().map(|told| text(told, "/data/leaks")).unwrap_or_default() == leaks {
            return Ok(());
        }
        tracing::warn!("things that seem to be ours and that no declaration wants: {leaks}");
        let mut report = told.clone().unwrap_or_else(
            || json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": REPORT, "namespace": PLACE}}),
        );
        report["data"] = json!({"leaks": leaks});
        let records = self.records();
        let written = if told.is_some() { records.replace(&report).await } else { records.create(&report).await };
        written.map(drop)
    }
}

/// What is gone already need not be removed.
fn gone(removed: Result<(), Failure>) -> Result<(), Failure> {
    match removed {
        Err(Failure::Missing) => Ok(()),
        removed => removed,
    }
}
