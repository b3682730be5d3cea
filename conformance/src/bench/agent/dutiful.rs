//! A client that has duties of the agent, as plainly as they can be done: it gets the bundle from the broker, marks each object,
//! notes what it is about to write and then what came of it, and hears of all that by watches.
//!
//! Left out, each to the agent's disadvantage: it does not wait for a poll and reports nothing, its watches are open already,
//! it decides nothing and takes every answer for a good one. To its own disadvantage it reads every answer and event whole.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::try_join_all;
use futures_util::{StreamExt, TryStreamExt, stream};
use http::Request;
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Value, json};
use sindri_model::{Bundle, RevisionId, StackId};
use tokio::time::Instant;

use super::apply::AT_ONCE;
use super::hands::{self, Hands};
use super::objects::{NAMESPACE, Part, STACK_LABEL, bundle, config_map_path, mark};

const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// Declares the parts at the broker, then gets them from there and applies them; says how long the latter took.
pub async fn apply(hands: &Hands, name: &str, parts: &[Part]) -> Result<Duration, String> {
    let (stack, text) = (hands.stack(name).await?, bundle(parts));
    let collections: BTreeSet<&str> = parts.iter().filter_map(|part| Some(part.path.rsplit_once('/')?.0)).collect();
    let watches = try_join_all(collections.into_iter().map(|path| watch(hands, path, stack))).await?;
    let revision = hands.submit(stack, &text).await?;
    let began = Instant::now();
    let applied = tokio::select! {
        biased; // what was heard is read before more is asked for
        broken = try_join_all(watches.into_iter().map(read_lines)) => broken.and(Err("a watch has ended".to_owned())),
        applied = apply_all(hands, stack, revision, parts) => applied,
    };
    let took = began.elapsed();
    hands.broker.delete_stack(stack).await.map_err(hands::words)?;
    applied.map(|()| took)
}

async fn apply_all(hands: &Hands, stack: StackId, revision: RevisionId, parts: &[Part]) -> Result<(), String> {
    let revision = hands.broker.revision(revision).await.map_err(hands::words)?;
    let mut objects = Bundle::parse(&revision.yaml_content).map_err(hands::words)?.into_objects();
    objects.iter_mut().for_each(|object| mark(object, stack, &revision.yaml_checksum));
    let names: Vec<Value> = objects.iter().map(|object| json!([NAMESPACE, object.key.name])).collect();
    note(hands, stack, &names).await?;
    let mut known = Vec::new();
    for query in ["&dryRun=All", ""] {
        let objects = parts.iter().zip(&objects);
        let applying = objects.map(|(part, object)| hands::apply(&hands.cluster, &part.path, query, &object.manifest));
        known = stream::iter(applying).buffer_unordered(AT_ONCE).try_collect::<Vec<Value>>().await?;
    }
    let names = known.iter().map(|object| json!([NAMESPACE, object["metadata"]["name"], object["metadata"]["uid"]]));
    note(hands, stack, &names.collect::<Vec<_>>()).await
}

/// What the client knows of its objects, where it would find it again.
async fn note(hands: &Hands, stack: StackId, objects: &[Value]) -> Result<(), String> {
    let name = format!("inventory-{stack}");
    let entries = json!(objects).to_string();
    let metadata = json!({"name": name, "namespace": NAMESPACE});
    let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"entries": entries}});
    hands::apply(&hands.cluster, &config_map_path(NAMESPACE, &name), "", &manifest).await.map(drop)
}

async fn watch(hands: &Hands, collection: &str, stack: StackId) -> Result<Body, String> {
    let path = format!("{collection}?watch=true&resourceVersion=0&labelSelector={STACK_LABEL}%3D{stack}");
    let request = Request::get(path).header("accept", METADATA).body(Body::empty()).map_err(hands::words)?;
    let answer = hands.cluster.send(request).await.map_err(hands::words)?;
    if answer.status().is_success() {
        Ok(answer.into_body())
    } else {
        Err(format!("{collection}: {}", answer.status()))
    }
}

/// Reads what a watch says, until it ends.
async fn read_lines(mut watch: Body) -> Result<(), String> {
    let mut unread = Vec::new();
    while let Some(frame) = watch.frame().await {
        unread.extend_from_slice(frame.map_err(hands::words)?.data_ref().map_or(&[][..], |data| data));
        while let Some(end) = unread.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = unread.drain(..=end).collect();
            serde_json::from_slice::<Value>(&line).map_err(hands::words)?;
        }
    }
    Ok(())
}
