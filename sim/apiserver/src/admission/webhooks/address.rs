//! Address of a webhook: its URL, or that to which its Service resolves.

use std::time::Duration;

use serde_json::Value;

use crate::http::request::decode;
use crate::object::fields::{array_at, string_at, value_at};
use crate::storage::store::Store;

/// Port of a URL or a Service reference that names none.
const PORT: u16 = 443;

/// Address of a webhook.
pub(crate) struct Address {
    /// URL with the timeout, as in error messages.
    pub(crate) url: String,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) server_name: String,
    /// Reason for which the Service does not resolve.
    pub(crate) failure: Option<String>,
}

/// Returns the address of a webhook with this `clientConfig`.
pub(crate) fn resolve(store: &Store, client_config: &Value, timeout: Duration) -> Address {
    let seconds = timeout.as_secs();
    match client_config.get("service").filter(|service| service.is_object()) {
        Some(service) => resolve_service(store, service, seconds),
        None => split_url(string_at(client_config, "/url"), seconds),
    }
}

fn split_url(url: &str, seconds: u64) -> Address {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (authority, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
    let path = clean_path(&decode(path, false).unwrap_or_else(|| path.to_owned()));
    let scheme = url.split_once("://").map_or("https", |(scheme, _)| scheme);
    let (host, port) = split_authority(authority);
    Address {
        url: format!("{scheme}://{authority}{path}?timeout={seconds}s"),
        server_name: host.to_owned(),
        host: host.to_owned(),
        port,
        failure: None,
    }
}

/// Returns the path that Go's client requests: without empty segments and `.`, with `..` resolved, and escaped.
fn clean_path(path: &str) -> String {
    let mut segments = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            other => segments.push(escape(other)),
        }
    }
    format!("/{}", segments.join("/"))
}

/// Escapes a segment of a path as Go does.
fn escape(segment: &str) -> String {
    let is_kept = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~$&+,:;=@".contains(&byte);
    let write = |byte: u8| if is_kept(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    segment.bytes().map(write).collect()
}

/// Splits a host, which may be an IPv6 address in brackets, from its port.
fn split_authority(authority: &str) -> (&str, u16) {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().unwrap_or(PORT)),
        _ => (authority, PORT),
    };
    (host.trim_start_matches('[').trim_end_matches(']'), port)
}

/// Resolves a Service: to one of its ready endpoints; if it has none, to its cluster IP; or to its external name.
fn resolve_service(store: &Store, reference: &Value, seconds: u64) -> Address {
    let (name, namespace) = (string_at(reference, "/name"), string_at(reference, "/namespace"));
    let port = value_at(reference, "/port").and_then(Value::as_u64).and_then(|port| u16::try_from(port).ok());
    let port = port.unwrap_or(PORT);
    let path = clean_path(string_at(reference, "/path"));
    let server_name = format!("{name}.{namespace}.svc");
    let url = format!("https://{server_name}:{port}{path}?timeout={seconds}s");
    let (destination, failure) = match find_destination(store, namespace, name, port) {
        Ok(destination) => (destination, None),
        Err(reason) => ((server_name.clone(), port), Some(reason)),
    };
    Address { url, host: destination.0, port: destination.1, server_name, failure }
}

fn find_destination(store: &Store, namespace: &str, name: &str, port: u16) -> Result<(String, u16), String> {
    let service = store.find("", "services", Some(namespace), name);
    let service = service.ok_or_else(|| format!("service {name:?} not found"))?;
    let cluster_ip = string_at(service, "/spec/clusterIP");
    match string_at(service, "/spec/type") {
        "ExternalName" => return Ok((string_at(service, "/spec/externalName").to_owned(), port)),
        "ClusterIP" | "NodePort" | "LoadBalancer" if cluster_ip == "None" => {
            return Err("cannot route to service with ClusterIP \"None\"".to_owned());
        }
        "ClusterIP" | "NodePort" | "LoadBalancer" => {}
        other => return Err(format!("unsupported service type {other:?}")),
    }
    let declared = array_at(service, "/spec/ports").iter().find(|declared| declared["port"] == port);
    let declared = declared.ok_or_else(|| format!("no service port {port} found for service {name:?}"))?;
    let endpoint = find_endpoint(store, namespace, name, string_at(declared, "/name"));
    Ok(endpoint.unwrap_or_else(|| (cluster_ip.to_owned(), port)))
}

/// Returns the address and the port of the first ready endpoint of a Service.
fn find_endpoint(store: &Store, namespace: &str, name: &str, port_name: &str) -> Option<(String, u16)> {
    let endpoints = store.find("", "endpoints", Some(namespace), name)?;
    array_at(endpoints, "/subsets").iter().find_map(|subset| {
        let address = string_at(array_at(subset, "/addresses").first()?, "/ip").to_owned();
        let port = array_at(subset, "/ports").iter().find(|port| string_at(port, "/name") == port_name)?;
        Some((address, u16::try_from(port["port"].as_u64()?).ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_split_into_host_and_port() {
        let parts = |url: &str| {
            let address = split_url(url, 7);
            (address.url, address.host, address.port)
        };
        let (url, host, port) = parts("https://127.0.0.1:8443");
        assert_eq!((url.as_str(), host.as_str(), port), ("https://127.0.0.1:8443/?timeout=7s", "127.0.0.1", 8443));
        let (url, host, port) = parts("https://hook.example.com/a/b");
        assert_eq!(
            (url.as_str(), host.as_str(), port),
            ("https://hook.example.com/a/b?timeout=7s", "hook.example.com", 443)
        );
        for (path, requested) in
            [("//failing", "/failing"), ("/a//b/", "/a/b"), ("/a/../b", "/b"), ("/x%2Fy%20z", "/x/y%20z"), ("/", "/")]
        {
            assert_eq!(parts(&format!("https://a{path}")).0, format!("https://a{requested}?timeout=7s"));
        }
        let (_, host, port) = parts("https://[::1]:9443/a");
        assert_eq!((host.as_str(), port), ("::1", 9443));
        let (_, host, port) = parts("https://[::1]/a");
        assert_eq!((host.as_str(), port), ("::1", 443));
    }
}
