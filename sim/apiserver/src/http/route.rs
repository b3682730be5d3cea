//! Parses request paths. The caller checks that the named resource exists.

/// Target of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/version`
    Version,
    /// `/healthz`, `/livez`, `/readyz`, and each check of them
    Health { endpoint: String, check: String },
    /// `/api`
    Core,
    /// `/apis`
    Groups,
    /// `/apis/GROUP`
    Group(String),
    /// `/api/v1`, `/apis/GROUP/VERSION`
    Resources { group: String, version: String },
    /// `/openapi/v2`
    OpenApi2,
    /// `/openapi/v3`
    OpenApi3Index,
    /// `/openapi/v3/…`
    OpenApi3 { group: String, version: String },
    /// A resource, one object of it, or a subresource of that.
    Objects(Objects),
    /// `/`
    Root,
    /// `/metrics`
    Metrics,
    /// `/openid/v1/jwks`
    Keys,
    /// `/.well-known/openid-configuration`
    Issuer,
    /// `…/watch/…`: the deprecated way to watch the target of another path.
    Watch(Box<Route>),
    /// A path below a group that is not one of a resource.
    NoResource,
    /// No known path.
    Nowhere,
}

/// Path of a resource, an object, or a subresource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Objects {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
}

pub(crate) fn route(path: &str) -> Route {
    let inner = path.strip_prefix('/').unwrap_or(path);
    let inner = inner.strip_suffix('/').unwrap_or(inner);
    let parts: Vec<&str> = if inner.is_empty() { Vec::new() } else { inner.split('/').collect() };
    // Only the name of an object may be `.` or `..`; it is rejected later with a specific error.
    let name_at = match parts.as_slice() {
        ["api", _, "namespaces", _, _, ..] => 5,
        ["api", ..] => 3,
        ["apis", _, _, "namespaces", _, _, ..] => 6,
        _ => 4,
    };
    let is_dots = |(index, part): (usize, &&str)| matches!(*part, "." | "..") && index != name_at;
    if parts.contains(&"") || parts.iter().enumerate().any(is_dots) {
        return if matches!(parts.first(), Some(&"api" | &"apis")) { Route::NoResource } else { Route::Nowhere };
    }
    match parts.as_slice() {
        [] => Route::Root,
        ["openid", "v1", "jwks"] => Route::Keys,
        [".well-known", "openid-configuration"] => Route::Issuer,
        ["version"] => Route::Version,
        ["metrics"] => Route::Metrics,
        [endpoint @ ("healthz" | "livez" | "readyz"), check @ ..]
            if check.len() <= 1 || check[0] == "poststarthook" =>
        {
            Route::Health { endpoint: (*endpoint).to_owned(), check: check.join("/") }
        }
        ["api"] => Route::Core,
        ["apis"] => Route::Groups,
        ["apis", group] => Route::Group((*group).to_owned()),
        ["openapi", "v2"] => Route::OpenApi2,
        ["openapi", "v3"] => Route::OpenApi3Index,
        ["openapi", "v3", "api", version] => Route::OpenApi3 { group: String::new(), version: (*version).to_owned() },
        ["openapi", "v3", "apis", group, version] => {
            Route::OpenApi3 { group: (*group).to_owned(), version: (*version).to_owned() }
        }
        ["api", version] => Route::Resources { group: String::new(), version: (*version).to_owned() },
        ["apis", group, version] => Route::Resources { group: (*group).to_owned(), version: (*version).to_owned() },
        // The deprecated way to watch.
        ["api", version, "watch", rest @ ..] => Route::Watch(Box::new(objects("", version, rest))),
        ["apis", group, version, "watch", rest @ ..] => Route::Watch(Box::new(objects(group, version, rest))),
        ["api", version, rest @ ..] => objects("", version, rest),
        ["apis", group, version, rest @ ..] => objects(group, version, rest),
        _ => Route::Nowhere,
    }
}

fn objects(group: &str, version: &str, rest: &[&str]) -> Route {
    let (namespace, rest) = match rest {
        // A namespace is itself a cluster-scoped object, and so are its subresources.
        ["namespaces", _, "status" | "finalize"] if group.is_empty() => (None, rest),
        ["namespaces", namespace, below @ ..] if !below.is_empty() => (Some((*namespace).to_owned()), below),
        _ => (None, rest),
    };
    let (plural, name, subresource) = match rest {
        [plural] => (plural, None, None),
        [plural, name] => (plural, Some(name), None),
        [plural, name, subresource] => (plural, Some(name), Some(subresource)),
        _ => return Route::NoResource,
    };
    let owned = |text: Option<&&str>| text.map(|text| (*text).to_owned());
    Route::Objects(Objects {
        group: group.to_owned(),
        version: version.to_owned(),
        plural: (*plural).to_owned(),
        namespace,
        name: owned(name),
        subresource: owned(subresource),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_objects() {
        let named = |path: &str| match route(path) {
            Route::Objects(found) => format!(
                "{}|{}|{}|{}|{}|{}",
                found.group,
                found.version,
                found.namespace.unwrap_or_default(),
                found.plural,
                found.name.unwrap_or_default(),
                found.subresource.unwrap_or_default()
            ),
            other => format!("{other:?}"),
        };
        assert_eq!(named("/api/v1/namespaces"), "|v1||namespaces||");
        assert_eq!(named("/api/v1/namespaces/a"), "|v1||namespaces|a|");
        assert_eq!(named("/api/v1/namespaces/a/status"), "|v1||namespaces|a|status");
        assert_eq!(named("/api/v1/namespaces/a/configmaps"), "|v1|a|configmaps||");
        assert_eq!(named("/apis/apps/v1/namespaces/a/deployments/b/status"), "apps|v1|a|deployments|b|status");
        assert_eq!(named("/apis/apps/v1/deployments"), "apps|v1||deployments||");
        assert_eq!(named("/apis/x.io/v1/gadgets/g"), "x.io|v1||gadgets|g|");
        assert_eq!(named("/nonsense"), "Nowhere");
    }
}
