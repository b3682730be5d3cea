//! URLs to which secrets may be sent, and from which keys may be read.

use std::net::IpAddr;

use http::Uri;
use http::uri::Scheme;

/// Returns true if a connection to this URL cannot be read or changed by others: HTTPS, or HTTP to this machine. It has no user.
pub fn is_secure_url(url: &str) -> bool {
    parse(url).is_some_and(|uri| is_https(&uri) || (uri.scheme() == Some(&Scheme::HTTP) && is_loopback(&uri)))
}

/// Returns true if an endpoint that a provider names is at least as secure as the URL of the provider.
pub fn is_secure_endpoint(provider: &str, endpoint: &str) -> bool {
    let is_encrypted = |url: &str| parse(url).is_some_and(|uri| is_https(&uri));
    is_secure_url(endpoint) && (is_encrypted(endpoint) || !is_encrypted(provider))
}

fn parse(url: &str) -> Option<Uri> {
    let uri: Uri = url.parse().ok()?;
    let authority = uri.authority()?.as_str();
    (!authority.contains('@') && !authority.is_empty()).then_some(uri)
}

fn is_https(uri: &Uri) -> bool {
    uri.scheme() == Some(&Scheme::HTTPS)
}

fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default();
    let address: Result<IpAddr, _> = host.trim_start_matches('[').trim_end_matches(']').parse();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_https_and_this_machine_are_secure() {
        for url in [
            "https://id.example",
            "https://id.example:8443/realms/a",
            "https://10.0.0.1",
            "http://127.0.0.1:4000",
            "http://127.9.9.9/a",
            "http://[::1]:4000",
            "http://localhost:4000/a",
        ] {
            assert!(is_secure_url(url), "{url}");
        }
        for url in [
            "http://id.example",
            "http://10.0.0.1",
            "http://localhost.example",
            "http://127.0.0.1.example",
            "http://localhost@id.example",
            "https://user:password@id.example",
            "ftp://localhost",
            "id.example",
            "localhost:4000",
            "/keys",
            "",
        ] {
            assert!(!is_secure_url(url), "{url}");
        }
    }

    #[test]
    fn an_endpoint_is_not_less_secure_than_its_provider() {
        assert!(is_secure_endpoint("https://id.example", "https://keys.example/a"));
        assert!(is_secure_endpoint("http://127.0.0.1:4000", "http://127.0.0.1:4000/a"));
        assert!(is_secure_endpoint("http://127.0.0.1:4000", "https://id.example/a"));
        assert!(!is_secure_endpoint("https://id.example", "http://id.example/a"));
        assert!(!is_secure_endpoint("https://id.example", "http://127.0.0.1/a"));
        assert!(!is_secure_endpoint("http://127.0.0.1:4000", "http://id.example/a"));
    }
}
