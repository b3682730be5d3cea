//! Stacks that had objects in the cluster before the first inventory was stored there: those of an agent whose inventories were lost
//! as a whole, for example with its namespace. An agent with a new id takes its place, of which the broker has no reports.
//!
//! The cluster is searched once. A ConfigMap beside the inventories has the result, and is lost with them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;
use sindri_model::StackId;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::inventory::{FORMER_STACKS_NAME, INVENTORY_LABEL, InventoryError, config_maps};
use crate::cluster::concurrency::run_concurrently;
use crate::cluster::{Cluster, ClusterError, ListedTypes, LiveObject};

/// Value of the label of the inventories, so that a client that deletes all of them by their label deletes the ConfigMap too.
const LABEL_VALUE: &str = "former-stacks";
/// Field of the ConfigMap with the ids of the stacks.
const STACKS: &str = "stacks";
/// Time limit of each of the two steps of the search, to find the kinds and to list their objects.
const SEARCH_MAX: Duration = Duration::from_secs(15);

/// Time after which a search that left out a kind is repeated.
const REPEAT_AFTER: Duration = Duration::from_secs(5 * 60);

/// Stacks that had objects before the first inventory; read or searched when a process first needs them.
#[derive(Debug, Default)]
pub struct FormerStacks(Mutex<Option<Known>>);

/// Result of a search.
#[derive(Debug)]
struct Known {
    stacks: BTreeSet<StackId>,
    /// Time from which it is repeated, because it left out a kind.
    repeat_at: Option<Instant>,
}

impl Known {
    fn complete(stacks: BTreeSet<StackId>) -> Self {
        Self { stacks, repeat_at: None }
    }

    fn is_outdated(&self) -> bool {
        self.repeat_at.is_some_and(|time| time <= Instant::now())
    }
}

impl FormerStacks {
    /// Returns true if a stack had objects in the cluster before the first inventory.
    pub async fn contains(&self, cluster: &Cluster, stack: StackId) -> Result<bool, InventoryError> {
        let mut known = self.0.lock().await;
        if known.as_ref().is_none_or(Known::is_outdated) {
            // The search is for all stacks: it does not end when there is a newer revision of one.
            *known = Some(read_or_search(&cluster.with_all_retries()).await?);
        }
        Ok(known.as_ref().is_some_and(|known| known.stacks.contains(&stack)))
    }
}

async fn read_or_search(cluster: &Cluster) -> Result<Known, InventoryError> {
    let key = config_maps().object_key(Some(cluster.agent_namespace()), FORMER_STACKS_NAME);
    let stored: Option<ConfigMap> = cluster.get(&config_maps(), &key).await?;
    if let Some(stacks) = stored.as_ref().and_then(parse) {
        return Ok(Known::complete(stacks));
    }
    let (stacks, errors) = search(cluster).await?;
    for error in &errors {
        tracing::warn!("the search for objects of former stacks leaves out a kind: {error}");
    }
    // A kind that the agent may not list has none of its objects.
    if !errors.iter().all(ClusterError::is_forbidden) {
        return Ok(Known { stacks, repeat_at: Some(Instant::now() + REPEAT_AFTER) });
    }
    if stored.is_none()
        && let Err(error) = store(cluster, &stacks).await
    {
        // This process knows the result, and the next one searches again.
        tracing::warn!("the result of the search for objects of former stacks is not stored: {error}");
    }
    Ok(Known::complete(stacks))
}

/// Searches the whole cluster for objects that prove to belong to any stack. Returns the stacks, and the errors of the kinds that
/// could not be searched: a new stack does not wait for an API group that does not respond.
async fn search(cluster: &Cluster) -> Result<(BTreeSet<StackId>, Vec<ClusterError>), ClusterError> {
    let limited = || cluster.with_deadline(Instant::now() + SEARCH_MAX);
    let ListedTypes { resources, mut errors } = limited().list_resources().await?;
    let cluster = &limited();
    let mut stacks = BTreeSet::new();
    for listed in run_concurrently(resources, async |resource| cluster.list_labelled(&resource).await).await {
        match listed {
            Ok((objects, _)) => stacks.extend(objects.iter().filter_map(find_owner)),
            Err(error) => errors.push(error),
        }
    }
    Ok((stacks, errors))
}

/// Returns the stack that an object proves to belong to.
fn find_owner(object: &LiveObject) -> Option<StackId> {
    let stack: StackId = object.ownership.stack.as_deref()?.parse().ok()?;
    object.ownership.proves_owner(stack, &object.key).then_some(stack)
}

fn parse(config_map: &ConfigMap) -> Option<BTreeSet<StackId>> {
    serde_json::from_str(config_map.data.as_ref()?.get(STACKS)?).ok()
}

async fn store(cluster: &Cluster, stacks: &BTreeSet<StackId>) -> Result<(), ClusterError> {
    cluster.ensure_agent_namespace().await?;
    let metadata = ObjectMeta {
        name: Some(FORMER_STACKS_NAME.to_owned()),
        namespace: Some(cluster.agent_namespace().to_owned()),
        labels: Some(BTreeMap::from([(INVENTORY_LABEL.to_owned(), LABEL_VALUE.to_owned())])),
        ..ObjectMeta::default()
    };
    let data = BTreeMap::from([(STACKS.to_owned(), json!(stacks).to_string())]);
    let config_map = ConfigMap { metadata, data: Some(data), ..ConfigMap::default() };
    let key = config_maps().object_key(Some(cluster.agent_namespace()), FORMER_STACKS_NAME);
    match cluster.create(&config_maps(), &key, &config_map).await {
        // An earlier attempt has created it, and its response was lost.
        Err(error) if error.is_conflict() => Ok(()),
        created => created.map(drop),
    }
}
