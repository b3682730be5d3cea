//! Checks of a receiver's URL, when it is stored and again before each delivery.
//!
//! No error contains the URL, because its path or query may be secret. The addresses of a host name are checked in
//! `connect.rs`, for the addresses that are connected to.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use http::Uri;
use http::uri::Scheme;
use sindri_model::limits::WEBHOOK_URL_CHARS_MAX;
use thiserror::Error;

use super::address::non_public_class;

/// Limit of DNS.
const HOST_CHARS_MAX: usize = 253;
/// Classes of addresses that an operator can allow. Others are never a receiver: link-local addresses, for example, have
/// the credentials of the machine.
const PRIVATE_CLASSES: [&str; 3] = ["loopback", "private", "shared"];

/// Receivers that the operator allows beyond HTTPS to public addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TargetPolicy {
    /// Allows plain HTTP.
    pub allow_http: bool,
    /// Allows private, loopback and other addresses that are not public.
    pub allow_private: bool,
}

/// A URL that is not allowed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum TargetError {
    #[error("the URL is longer than {WEBHOOK_URL_CHARS_MAX} characters")]
    TooLong,
    #[error("this is not a URL like https://HOST/PATH")]
    Malformed,
    #[error("the URL must begin with https://")]
    Scheme,
    #[error("the URL must not contain a user or a password")]
    UserInfo,
    #[error("the URL must not contain a fragment (#)")]
    Fragment,
    #[error("the host of the URL is not a name or an address")]
    Host,
    #[error("the port of the URL is not in the range 1 to 65535")]
    Port,
    #[error("the URL resolves to a {0} address, which is not allowed")]
    Address(&'static str),
}

/// A URL that is allowed, as far as its text shows. `Debug` prints nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Target {
    uri: Uri,
    host: String,
    port: Option<u16>,
}

impl Target {
    /// Parses a URL and checks that it is allowed.
    pub(crate) fn parse(text: &str, policy: TargetPolicy) -> Result<Self, TargetError> {
        if text.len() > WEBHOOK_URL_CHARS_MAX {
            return Err(TargetError::TooLong);
        }
        if text.contains('#') {
            return Err(TargetError::Fragment);
        }
        let uri: Uri = text.parse().map_err(|_| TargetError::Malformed)?;
        check_scheme(uri.scheme().ok_or(TargetError::Malformed)?, policy)?;
        let authority = uri.authority().ok_or(TargetError::Malformed)?;
        if authority.as_str().contains('@') {
            return Err(TargetError::UserInfo);
        }
        let host = authority.host().to_owned();
        check_host(&host, policy)?;
        let port = parse_port(authority.as_str().strip_prefix(&host).ok_or(TargetError::Malformed)?)?;
        Ok(Self { uri, host, port })
    }

    /// Returns the whole URL. It may contain secrets.
    pub(crate) fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Returns the target of the request line.
    pub(crate) fn path_and_query(&self) -> String {
        match self.uri.query() {
            Some(query) => format!("{}?{query}", self.uri.path()),
            None => self.uri.path().to_owned(),
        }
    }

    /// Returns the value of the `Host` header.
    pub(crate) fn host_header(&self) -> String {
        match self.port {
            Some(port) => format!("{}:{port}", self.host),
            None => self.host.clone(),
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Target(…)")
    }
}

/// Checks that every address of a name is allowed: one that is not rejects the name.
pub(crate) fn check_addresses(addresses: &[SocketAddr], policy: TargetPolicy) -> Result<(), TargetError> {
    addresses.iter().try_for_each(|address| check_address(address.ip(), policy))
}

/// Returns the host of a URL as an address, if it is one.
pub(crate) fn parse_address(host: &str) -> Option<IpAddr> {
    match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(inside) => inside.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => host.parse().ok(),
    }
}

fn check_address(address: IpAddr, policy: TargetPolicy) -> Result<(), TargetError> {
    match non_public_class(address) {
        Some(class) if !(policy.allow_private && PRIVATE_CLASSES.contains(&class)) => Err(TargetError::Address(class)),
        Some(_) | None => Ok(()),
    }
}

fn check_scheme(scheme: &Scheme, policy: TargetPolicy) -> Result<(), TargetError> {
    let allowed = *scheme == Scheme::HTTPS || (*scheme == Scheme::HTTP && policy.allow_http);
    if allowed { Ok(()) } else { Err(TargetError::Scheme) }
}

fn check_host(host: &str, policy: TargetPolicy) -> Result<(), TargetError> {
    if let Some(address) = parse_address(host) {
        return check_address(address, policy);
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let named = !host.is_empty() && host.len() <= HOST_CHARS_MAX && host.bytes().all(plain);
    if named { Ok(()) } else { Err(TargetError::Host) }
}

fn parse_port(after_host: &str) -> Result<Option<u16>, TargetError> {
    if after_host.is_empty() {
        return Ok(None);
    }
    let port = after_host.strip_prefix(':').and_then(|digits| digits.parse().ok()).filter(|port| *port != 0);
    port.map(Some).ok_or(TargetError::Port)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRICT: TargetPolicy = TargetPolicy { allow_http: false, allow_private: false };
    const LENIENT: TargetPolicy = TargetPolicy { allow_http: true, allow_private: true };

    #[test]
    fn urls_that_are_not_allowed_are_rejected_with_a_reason() {
        let long = format!("https://a/{}", "x".repeat(WEBHOOK_URL_CHARS_MAX));
        let long_host = format!("https://{}/", "x".repeat(HOST_CHARS_MAX + 1));
        for (url, error) in [
            ("", TargetError::Malformed),
            ("hooks.example.com", TargetError::Malformed),
            ("/path", TargetError::Malformed),
            ("https:///path", TargetError::Malformed),
            ("https://ex ample.com/", TargetError::Malformed),
            ("https://exämple.com/", TargetError::Malformed),
            ("http://hooks.example.com/", TargetError::Scheme),
            ("ftp://hooks.example.com/", TargetError::Scheme),
            ("file://host/etc/passwd", TargetError::Scheme),
            ("https://user@hooks.example.com/", TargetError::UserInfo),
            ("https://user:password@hooks.example.com/", TargetError::UserInfo),
            ("https://8.8.8.8@127.0.0.1/", TargetError::UserInfo),
            ("https://hooks.example.com/#part", TargetError::Fragment),
            ("https://:443/", TargetError::Host),
            ("https://hooks!example/", TargetError::Host),
            ("https://[fe80::1%25eth0]/", TargetError::Host),
            ("https://hooks%2eexample/", TargetError::Malformed),
            ("https://hooks.example.com:0/", TargetError::Port),
            ("https://hooks.example.com:/", TargetError::Port),
            ("https://hooks.example.com:65536/", TargetError::Port),
            ("https://127.0.0.1/", TargetError::Address("loopback")),
            ("https://[::1]:8443/", TargetError::Address("loopback")),
            ("https://[::ffff:10.0.0.1]/", TargetError::Address("private")),
            ("https://169.254.169.254/latest/meta-data", TargetError::Address("link-local")),
            (&long_host, TargetError::Host),
            (&long, TargetError::TooLong),
        ] {
            assert_eq!(Target::parse(url, STRICT).unwrap_err(), error, "{url}");
        }
    }

    #[test]
    fn only_what_the_policy_allows_is_allowed() {
        let only_http = TargetPolicy { allow_http: true, allow_private: false };
        assert!(Target::parse("https://hooks.example.com:8443/a?b=c", STRICT).is_ok());
        assert!(Target::parse("HTTPS://1.1.1.1", STRICT).is_ok());
        assert!(Target::parse("http://receiver/hook", only_http).is_ok());
        assert_eq!(Target::parse("http://10.0.0.1/", only_http).unwrap_err(), TargetError::Address("private"));
        assert!(Target::parse("http://10.0.0.1/", LENIENT).is_ok());
        for (url, class) in [
            ("http://169.254.169.254/", "link-local"),
            ("http://[fe80::1]/", "link-local"),
            ("http://[::ffff:169.254.169.254]/", "link-local"),
            ("http://168.63.129.16/", "metadata"),
            ("http://[fd00:ec2::254]/", "metadata"),
            ("http://0.0.0.0/", "unspecified"),
            ("http://224.0.0.1/", "multicast"),
        ] {
            assert_eq!(Target::parse(url, LENIENT).unwrap_err(), TargetError::Address(class), "{url}");
        }
        assert_eq!(Target::parse("ftp://10.0.0.1/", LENIENT).unwrap_err(), TargetError::Scheme);
    }

    #[test]
    fn one_address_that_is_not_public_rejects_the_name() {
        let addresses = ["8.8.8.8:443".parse().unwrap(), "10.0.0.1:443".parse().unwrap()];
        assert_eq!(check_addresses(&addresses, STRICT), Err(TargetError::Address("private")));
        assert_eq!(check_addresses(&addresses[..1], STRICT), Ok(()));
        assert_eq!(check_addresses(&addresses, LENIENT), Ok(()));
    }

    #[test]
    fn a_target_has_host_and_path_and_is_not_printed_by_debug() {
        let target = Target::parse("https://[2606:4700::1]:8443/a?token=b", STRICT).unwrap();
        assert_eq!(
            (target.host_header().as_str(), target.path_and_query().as_str()),
            ("[2606:4700::1]:8443", "/a?token=b")
        );
        let plain = Target::parse("https://hooks.example.com?x", STRICT).unwrap();
        assert_eq!((plain.host_header().as_str(), plain.path_and_query().as_str()), ("hooks.example.com", "/?x"));
        assert_eq!(format!("{target:?}"), "Target(…)");
    }
}
