//! A pool of clusters.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sindri_cluster::{Home, LocalProvider, Options, Pool, PooledCluster};

use crate::support::wait_until;

fn traces(pooled: &PooledCluster) -> (Vec<u32>, PathBuf) {
    let ids = pooled.cluster().processes().into_iter().map(|(_, id)| id).collect();
    (ids, pooled.access().kubeconfig.parent().unwrap().to_owned())
}

#[test]
#[ignore = "needs the control plane: cargo xtask test"]
fn a_pool_returns_new_clusters_and_leaves_nothing_behind() {
    let pristine = Options { pristine: true, ..Options::default() };
    let pool = Pool::new(Arc::new(LocalProvider::new(Home::from_env())), &pristine, 2).unwrap();
    let mut all = Vec::new();
    let mut servers = BTreeSet::new();
    for _ in 0..3 {
        let pooled = pool.take().unwrap();
        servers.insert(pooled.access().server.clone());
        all.push(traces(&pooled));
    }
    assert_eq!(servers.len(), 3, "{servers:?}");
    let last = pool.take().unwrap();
    all.push(traces(&last));
    // A cluster that outlives its pool ends when it is dropped.
    drop(pool);
    assert!(all.last().unwrap().1.is_dir());
    drop(last);
    let exists = |id: &u32| Path::new(&format!("/proc/{id}/exe")).read_link().is_ok();
    wait_until("every cluster to be gone", || {
        all.iter().all(|(ids, directory)| !directory.exists() && !ids.iter().any(exists))
    });
}
