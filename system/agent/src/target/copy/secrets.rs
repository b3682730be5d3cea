//! Secrets that hold the copy: reads them, and writes those that changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use sindri_model::{AgentId, ObjectKey};

use super::layout::{CHUNKS_MAX, Chunk, CopyHeader, CopyLayout};
use super::record::StackCopy;
use crate::cluster::{ApiResource, ApplyMode, ApplyPatch, Cluster, ClusterError};
use crate::settings::Settings;

/// Label of the Secrets.
const COPY_LABEL: &str = "sindri.dev/target-state";
const COPY_LABEL_VALUE: &str = "copy";
const NAME_PREFIX: &str = "target-state-";
/// Key of the header in the data of each Secret.
const HEADER_KEY: &str = "header";

/// Copy of the target state of an agent.
pub struct LoadedCopy {
    /// Id of the agent.
    pub agent: AgentId,
    /// Revision and policy of each stack, ascending by sequence.
    pub stacks: Vec<StackCopy>,
}

/// Returns true for names of Secrets that hold the copy.
pub fn is_copy_name(name: &str) -> bool {
    name.starts_with(NAME_PREFIX)
}

/// Reads the copy of the target state of the agent with these settings; `None` if there is none.
pub async fn load_copy(cluster: &Cluster, settings: &Settings) -> Result<Option<LoadedCopy>, ClusterError> {
    let (layout, stacks) = read_layout(cluster).await?;
    let Some(header) = layout.header().filter(|_| !stacks.is_empty()) else { return Ok(None) };
    if (&header.name, &header.cluster_name) != (&settings.name, &settings.cluster_name) {
        tracing::warn!("the copy of the target state is of agent {}, and is ignored", header.name);
        return Ok(None);
    }
    Ok(Some(LoadedCopy { agent: header.agent, stacks }))
}

/// Returns true if there is a copy of the target state of any agent: then one has worked in this cluster.
pub async fn has_copy(cluster: &Cluster) -> Result<bool, ClusterError> {
    let key = secrets().object_key(Some(cluster.agent_namespace()), &chunk_name(0));
    Ok(cluster.get_metadata(&secrets(), &key).await?.is_some())
}

/// Reads the Secrets of the copy. A part that cannot be used is logged and ignored.
pub async fn read_layout(cluster: &Cluster) -> Result<(CopyLayout, Vec<StackCopy>), ClusterError> {
    let namespace = cluster.agent_namespace();
    let secrets: Vec<Secret> = cluster.list_full(&secrets(), namespace, COPY_LABEL, COPY_LABEL_VALUE).await?;
    Ok(parse_secrets(secrets, |cause| tracing::warn!("ignored a part of the copy of the target state: {cause}")))
}

fn parse_secrets(secrets: Vec<Secret>, mut log: impl FnMut(String)) -> (CopyLayout, Vec<StackCopy>) {
    let (mut chunks, mut unreadable) = (BTreeMap::new(), BTreeMap::new());
    for secret in secrets {
        let name = secret.metadata.name.clone().unwrap_or_default();
        // A backup tool may have copied one under another name, with its label.
        let index = name.strip_prefix(NAME_PREFIX).and_then(|index| index.parse::<usize>().ok());
        let Some(index) = index.filter(|index| *index < CHUNKS_MAX && chunk_name(*index) == name) else { continue };
        let resource_version = secret.metadata.resource_version.clone();
        match parse_secret(secret) {
            Ok(chunk) => drop(chunks.insert(index, chunk)),
            Err(cause) => {
                log(format!("Secret {name}: {cause}"));
                unreadable.insert(index, Chunk { resource_version, ..Chunk::default() });
            }
        }
    }
    let (mut layout, stacks) = CopyLayout::from_chunks(chunks, log);
    layout.add_unreadable(unreadable);
    (layout, stacks)
}

fn parse_secret(secret: Secret) -> Result<(CopyHeader, Chunk), String> {
    let mut data = secret.data.unwrap_or_default();
    let header = data.remove(HEADER_KEY).ok_or("it has no header")?;
    let header = serde_json::from_slice(&header.0).map_err(|_| "its header cannot be read".to_owned())?;
    let parts = data.into_iter().map(|(key, part)| Ok((key.parse()?, part.0))).collect::<Result<_, String>>()?;
    Ok((header, Chunk { parts, resource_version: secret.metadata.resource_version }))
}

/// Writes one chunk, if its Secret has not changed since it was read or written, and creates one that was not found; stores
/// its new resourceVersion in the layout.
pub async fn write_chunk(cluster: &Cluster, layout: &mut CopyLayout, index: usize) -> Result<(), ClusterError> {
    let resource = secrets();
    let key = resource.object_key(Some(cluster.agent_namespace()), &chunk_name(index));
    let mut secret = build_secret(cluster.agent_namespace(), layout, index);
    if secret.metadata.resource_version.is_none() {
        // Another process may have written it since it was not found. It is created without data: an apply does not remove
        // parts that it has not applied.
        let empty = Secret { metadata: secret.metadata.clone(), ..Secret::default() };
        secret.metadata.resource_version = Some(match cluster.create(&resource, &key, &empty).await {
            Err(conflict) if conflict.is_conflict() => find_unlabelled(cluster, &key, conflict).await?,
            created => created?.resource_version,
        });
    }
    let written = cluster.apply_metadata(&ApplyPatch::new(&resource, &key, &secret), ApplyMode::Persist).await?;
    layout.chunks.entry(index).or_default().resource_version = Some(written.resource_version);
    Ok(())
}

/// Returns the resourceVersion of a Secret of the copy that was not found because another client has removed its label;
/// otherwise the conflict.
async fn find_unlabelled(cluster: &Cluster, key: &ObjectKey, conflict: ClusterError) -> Result<String, ClusterError> {
    let live: Option<Secret> = cluster.get(&secrets(), key).await?;
    let metadata = live.map(|live| live.metadata).unwrap_or_default();
    let has_label = metadata.labels.is_some_and(|labels| labels.contains_key(COPY_LABEL));
    metadata.resource_version.filter(|_| !has_label).ok_or(conflict)
}

fn build_secret(namespace: &str, layout: &CopyLayout, index: usize) -> Secret {
    let header = serde_json::to_vec(&layout.header()).expect("its keys are strings");
    let chunk = layout.chunks.get(&index).cloned().unwrap_or_default();
    let parts = chunk.parts.into_iter().map(|(key, part)| (key.to_string(), ByteString(part)));
    let metadata = ObjectMeta {
        name: Some(chunk_name(index)),
        namespace: Some(namespace.to_owned()),
        labels: Some(BTreeMap::from([(COPY_LABEL.to_owned(), COPY_LABEL_VALUE.to_owned())])),
        resource_version: chunk.resource_version,
        ..ObjectMeta::default()
    };
    let data = parts.chain([(HEADER_KEY.to_owned(), ByteString(header))]).collect();
    Secret { metadata, data: Some(data), ..Secret::default() }
}

fn secrets() -> Arc<ApiResource> {
    Arc::new(ApiResource::from_namespaced_type::<Secret>())
}

fn chunk_name(index: usize) -> String {
    format!("{NAME_PREFIX}{index}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::copy::fixtures::{header, revision};
    use crate::target::revision::Revision;

    fn saved() -> (CopyLayout, Vec<Secret>) {
        let mut layout = CopyLayout::default();
        let revision = Arc::new(Revision::from_wire(revision(1, 1, "a: 1")));
        layout.update(header(1), &vec![(revision, BTreeMap::new())]);
        let secrets = layout.chunks.keys().map(|index| build_secret("sindri-system", &layout, *index)).collect();
        (layout, secrets)
    }

    #[test]
    fn secrets_are_read_as_they_were_written_and_copies_of_them_are_ignored() {
        let (layout, mut secrets) = saved();
        let mut backup = secrets[0].clone();
        backup.metadata.name = Some("target-state-0-backup".to_owned());
        backup.data = None;
        secrets.push(backup);
        let (read, stacks) = parse_secrets(secrets, |line| panic!("{line}"));
        assert_eq!((read, stacks.len()), (layout, 1));
    }

    #[test]
    fn a_secret_with_other_content_is_ignored_with_a_reason() {
        let (_, secrets) = saved();
        let broken = |change: &dyn Fn(&mut BTreeMap<String, ByteString>)| {
            let mut secrets = secrets.clone();
            change(secrets[0].data.as_mut().unwrap());
            let mut log = Vec::new();
            let stacks = parse_secrets(secrets, |line| log.push(line)).1;
            assert_eq!((stacks.len(), log.len()), (0, 1), "{log:?}");
        };
        broken(&|data| drop(data.remove(HEADER_KEY)));
        broken(&|data| drop(data.insert(HEADER_KEY.to_owned(), ByteString(b"{}".to_vec()))));
        broken(&|data| drop(data.insert("note".to_owned(), ByteString(Vec::new()))));
        broken(&|data| data.values_mut().for_each(|value| value.0.truncate(value.0.len() - 1)));
    }
}
