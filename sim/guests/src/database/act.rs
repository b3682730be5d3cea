//! One reconcile: read, plan, carry out, report.

use kube::Client;
use serde_json::{Value, json};
use sindri_model::{Clock, Entropy};

use super::DATABASE;
use super::children::{CHILDREN, Child, NAME_LABEL, is_owned_by};
use super::manner::{Manner, Names, Reports, Updates};
use super::plan::{Observed, Obstacle, Step, plan};
use super::status::report;
use crate::client::{Failure, Objects, is_deleting, name, text};

/// How often everything is read again at once because somebody else wrote; then it waits as after any failure.
const ROUNDS_MAX: usize = 5;
/// How often a create is sent again by the manner that does not look first.
const SENDS_MAX: usize = 3;

/// How a reconcile ended that did not fail for now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There is no such declaration, or it is being deleted.
    NothingToDo,
    /// Everything is as declared, and reported.
    Applied,
    /// It cannot be, which is reported; trying again soon is pointless.
    Refused(String),
}

/// Reconciles declarations, one at a time.
pub struct Reconciler {
    /// The cluster.
    pub client: Client,
    /// For the times in conditions.
    pub clock: Clock,
    /// For passwords.
    pub entropy: Entropy,
    /// How it goes about it.
    pub manner: Manner,
}

impl Reconciler {
    /// Reconciles one declaration. An error is one that may go away by itself.
    pub async fn reconcile(&self, namespace: &str, of: &str) -> Result<Outcome, Failure> {
        let mut last = Failure::Conflict;
        for _ in 0..ROUNDS_MAX {
            match self.round(namespace, of).await {
                Err(failure) if failure.is_stale() => last = failure,
                // Not even reporting it is allowed: what is left is the log.
                Err(Failure::Permanent(words)) => return Ok(Outcome::Refused(words)),
                ended => return ended,
            }
        }
        Err(last)
    }

    async fn round(&self, namespace: &str, of: &str) -> Result<Outcome, Failure> {
        let Some(mut parent) = self.parents(namespace).get(of).await? else { return Ok(Outcome::NothingToDo) };
        if is_deleting(&parent) {
            return Ok(Outcome::NothingToDo);
        }
        let mut observed = Observed::new();
        let refused = match self.look_and_act(&mut parent, &mut observed).await {
            Ok(()) => None,
            Err(Failure::Permanent(words)) => Some(words),
            Err(failure) => return Err(failure),
        };
        self.report(&parent, &observed, refused.as_deref()).await?;
        Ok(refused.map_or(Outcome::Applied, Outcome::Refused))
    }

    async fn look_and_act(&self, parent: &mut Value, observed: &mut Observed) -> Result<(), Failure> {
        *observed = self.observe(parent).await?;
        match self.manner.reports {
            Reports::Last => {}
            Reports::First => *parent = self.report(parent, observed, None).await?,
        }
        self.carry_out(parent, observed).await
    }

    fn parents(&self, namespace: &str) -> Objects {
        Objects::within(&self.client, DATABASE, namespace)
    }

    fn children(&self, child: Child, parent: &Value) -> Objects {
        Objects::within(&self.client, child.kind(), text(parent, "/metadata/namespace"))
    }

    async fn observe(&self, parent: &Value) -> Result<Observed, Failure> {
        let mut observed = Observed::new();
        for child in CHILDREN {
            let objects = self.children(child, parent);
            let found = match self.manner.names {
                Names::Given => objects.get(&child.name(parent)).await?,
                Names::Generated => {
                    let (found, _) = objects.list(&format!("{NAME_LABEL}={}", name(parent))).await?;
                    found.into_iter().find(|found| is_owned_by(found, parent))
                }
            };
            observed.extend(found.map(|found| (child, found)));
        }
        Ok(observed)
    }

    /// Carries out the plan and keeps what the server answered: it is what was observed last.
    async fn carry_out(&self, parent: &Value, observed: &mut Observed) -> Result<(), Failure> {
        let planned = plan(parent, observed);
        for step in planned.steps {
            let (child, written) = match step {
                Step::Create(child, object) => (child, self.create(child, parent, object).await?),
                Step::Update(child, object) => (child, self.update(child, parent, object).await?),
            };
            observed.insert(child, written);
        }
        match planned.obstacle {
            None => Ok(()),
            Some(Obstacle::Leaving(words)) => Err(Failure::Transient(words)),
            Some(Obstacle::Foreign(words)) => Err(Failure::Permanent(words)),
        }
    }

    async fn create(&self, child: Child, parent: &Value, mut object: Value) -> Result<Value, Failure> {
        self.choose_password(child, &mut object);
        let objects = self.children(child, parent);
        match self.manner.names {
            Names::Given => objects.create(&object).await,
            Names::Generated => {
                object["metadata"]["name"] = Value::Null;
                object["metadata"]["generateName"] = json!(format!("{}-", child.name(parent)));
                let mut sent = objects.create(&object).await;
                for _ in 1..SENDS_MAX {
                    if !matches!(sent, Err(Failure::Transient(_))) {
                        break;
                    }
                    sent = objects.create(&object).await;
                }
                sent
            }
        }
    }

    async fn update(&self, child: Child, parent: &Value, mut object: Value) -> Result<Value, Failure> {
        if text(&object, "/data/password").is_empty() {
            self.choose_password(child, &mut object);
        }
        match self.manner.updates {
            Updates::Versioned => {}
            Updates::Blind => object["metadata"]["resourceVersion"] = Value::Null,
        }
        self.children(child, parent).replace(&object).await
    }

    fn choose_password(&self, child: Child, object: &mut Value) {
        if child == Child::Secret {
            let password: String = self.entropy.bytes::<16>().iter().map(|byte| format!("{byte:02x}")).collect();
            object["stringData"] = json!({"password": password});
        }
    }

    /// WriteCounts the status if it says something new; returns the declaration as it is then.
    async fn report(&self, parent: &Value, observed: &Observed, trouble: Option<&str>) -> Result<Value, Failure> {
        let status = report(parent, observed, trouble, &self.clock.now().to_string());
        if parent.get("status") == Some(&status) {
            return Ok(parent.clone());
        }
        let mut told = parent.clone();
        told["status"] = status;
        self.parents(text(parent, "/metadata/namespace")).replace_status(&told).await
    }
}

impl std::fmt::Debug for Reconciler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reconciler").field("manner", &self.manner).finish_non_exhaustive()
    }
}
