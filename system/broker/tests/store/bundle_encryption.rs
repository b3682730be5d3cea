//! Encryption of bundles at rest.

use sindri_broker::{BundleCipher, EncryptionKey, Store};
use sindri_model::{Checksum, Sequence, StackId};

use crate::support::{ALL, World, contracts, entropy, revision, write_context};

contracts!(
    encrypted_and_plain_bundles_are_read_side_by_side,
    an_encrypted_bundle_is_not_read_without_its_key,
    plain_bundles_are_rewritten_in_batches,
    a_batch_has_few_large_bundles,
);

const PLAIN: &str = "a: plain";
const CANARY: &str = "a: canary";

fn cipher(digits: &str) -> BundleCipher {
    BundleCipher::new(EncryptionKey::parse(&digits.repeat(32)).unwrap(), true)
}

async fn submit(store: &dyn Store, stack: StackId, yaml: &str) -> Sequence {
    let appended = store.append_revision(write_context(), revision(stack, yaml)).await.unwrap();
    assert_eq!((appended.yaml_content.as_str(), appended.yaml_checksum), (yaml, Checksum::compute(yaml)));
    appended.sequence_id
}

/// Returns the bundles of a stack as clients read them, after a check of each way to read them.
async fn contents(world: &World, stack: StackId) -> Vec<String> {
    let mut contents = Vec::new();
    for listed in world.store.list_revisions(stack, ALL).await.unwrap() {
        let read = world.store.get_revision(listed.id).await.unwrap().revision;
        assert_eq!(read, listed);
        assert_eq!(Checksum::compute(&read.yaml_content), read.yaml_checksum);
        contents.push(read.yaml_content);
    }
    contents
}

/// Returns the stored texts of all revisions, and changes none of them.
async fn stored(world: &World) -> Vec<String> {
    let texts = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let (mut after, seen) = (Sequence::default(), texts.clone());
    loop {
        let seen = seen.clone();
        let read = Box::new(move |_, stored: &str| {
            seen.lock().unwrap().push(stored.to_owned());
            Ok(None)
        });
        match world.store.rewrite_bundles(after, 2, read).await.unwrap() {
            Some(last) => after = last,
            None => break,
        }
    }
    let texts = texts.lock().unwrap();
    texts.clone()
}

async fn encrypted_and_plain_bundles_are_read_side_by_side(world: World) {
    let [agent] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    world.target(agent, stack).await.unwrap();
    submit(&*world.store, stack, PLAIN).await;
    world.store.set_bundle_cipher(cipher("ab"));
    submit(&*world.store, stack, CANARY).await;
    assert_eq!(contents(&world, stack).await, [PLAIN, CANARY]);
    let state = world.store.deliver_target_state(agent).await.unwrap();
    assert_eq!(state.revisions[0].revision.yaml_content, CANARY);
    let texts = stored(&world).await;
    assert_eq!(texts[0], PLAIN);
    assert!(!texts[1].contains("canary") && !texts[1].is_empty(), "{texts:?}");
    // A retry with the same key finds the first submission, although the bundle is encrypted differently each time.
    let context = || crate::support::write_context_with_key("again");
    let first = world.store.append_revision(context(), revision(stack, CANARY)).await.unwrap();
    let again = world.store.append_revision(context(), revision(stack, CANARY)).await.unwrap();
    assert_eq!(first, again);
}

async fn an_encrypted_bundle_is_not_read_without_its_key(world: World) {
    world.add_agents::<0>().await;
    let stack = world.add_stack("web").await;
    submit(&*world.store, stack, PLAIN).await;
    let encrypt = move |id, stored: &str| Ok(Some(cipher("cd").encrypt(&entropy(), id, stored)));
    world.store.rewrite_bundles(Sequence::default(), 10, Box::new(encrypt)).await.unwrap();
    let error = world.store.list_revisions(stack, ALL).await.unwrap_err().to_string();
    assert!(error.contains("is encrypted and cannot be decrypted"), "{error}");
    world.store.set_bundle_cipher(cipher("ab"));
    assert!(world.store.list_revisions(stack, ALL).await.is_err(), "another key decrypts it");
    // Lists without bundles need no key.
    assert_eq!(world.store.list_revisions_without_content(stack, ALL).await.unwrap().len(), 1);
}

async fn plain_bundles_are_rewritten_in_batches(world: World) {
    world.add_agents::<0>().await;
    let stack = world.add_stack("web").await;
    for number in 0..5 {
        submit(&*world.store, stack, &format!("a: {number}")).await;
    }
    world.store.set_bundle_cipher(cipher("ab"));
    let (mut after, mut batches) = (Sequence::default(), 0);
    loop {
        let encrypt = move |id, stored: &str| Ok(Some(cipher("ab").encrypt(&entropy(), id, stored)));
        match world.store.rewrite_bundles(after, 2, Box::new(encrypt)).await.unwrap() {
            Some(last) => (after, batches) = (last, batches + 1),
            None => break,
        }
    }
    assert_eq!(batches, 3);
    assert!(stored(&world).await.iter().all(|text| !text.contains("a: ")));
    assert_eq!(contents(&world, stack).await, ["a: 0", "a: 1", "a: 2", "a: 3", "a: 4"]);
    // A function that fails changes nothing of its batch.
    let fail = |_, _: &str| Err(sindri_broker::StoreError::Failed("on purpose".to_owned()));
    world.store.rewrite_bundles(Sequence::default(), 2, Box::new(fail)).await.unwrap_err();
    assert_eq!(contents(&world, stack).await.len(), 5);
}

async fn a_batch_has_few_large_bundles(world: World) {
    world.add_agents::<0>().await;
    let stack = world.add_stack("web").await;
    let mebibyte = 1024 * 1024;
    for size in [1, 2, mebibyte, 5 * mebibyte, 2 * mebibyte, 2 * mebibyte - 1, 3] {
        submit(&*world.store, stack, &"a".repeat(size)).await;
    }
    let (mut after, mut batches) = (Sequence::default(), Vec::new());
    loop {
        let count = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let counter = count.clone();
        let read = move |_, _: &str| {
            counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Ok(None)
        };
        let Some(last) = world.store.rewrite_bundles(after, 10, Box::new(read)).await.unwrap() else { break };
        batches.push(count.load(std::sync::atomic::Ordering::Relaxed));
        after = last;
    }
    // Up to 4 MiB, or a single one.
    assert_eq!(batches, [3, 1, 2, 1]);
}
