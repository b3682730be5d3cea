//! `/metrics`: the version, and the number of stored objects of each resource.

use std::fmt::Write;

use super::groups;
use crate::http::response::Response;
use crate::object::fields::string_at;
use crate::storage::store::Store;

/// Media type of the metrics.
const MEDIA: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Returns the metrics as text for Prometheus.
pub(crate) fn respond(store: &Store) -> Response {
    let version = groups::version();
    let mut text = String::from(
        "# HELP apiserver_storage_objects [STABLE] Number of stored objects at the time of last check split by kind.\n# TYPE apiserver_storage_objects gauge\n",
    );
    for (group, plural, count) in store.counts() {
        let resource = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "apiserver_storage_objects{{resource={resource:?}}} {count}");
    }
    let part = |field: &str| string_at(&version, &format!("/{field}")).to_owned();
    let _ = write!(
        text,
        "# HELP kubernetes_build_info [ALPHA] A metric with a constant '1' value labeled by major, minor, git version, git commit, git tree state, build date, Go version, and compiler from which Kubernetes was built, and platform on which it is running.\n# TYPE kubernetes_build_info gauge\nkubernetes_build_info{{git_version={:?},major={:?},minor={:?}}} 1\n",
        part("gitVersion"),
        part("major"),
        part("minor")
    );
    Response::text(200, &text).with_header("content-type", MEDIA.to_owned())
}
