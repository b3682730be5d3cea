//! Network types of Kubernetes' CEL library: IP addresses, CIDR ranges and URLs.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// A CIDR range.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    pub(crate) address: IpAddr,
    pub(crate) length: u8,
}

/// A URL in its parts.
#[derive(Clone, PartialEq, Eq)]
pub struct Url {
    pub(crate) scheme: String,
    pub(crate) host: String,
    pub(crate) path: String,
    pub(crate) query: String,
}

/// Parses an IP address. Zones and IPv4-mapped IPv6 addresses are rejected.
pub(crate) fn parse_address(text: &str) -> Option<IpAddr> {
    let address: IpAddr = text.parse().ok()?;
    let is_mapped = matches!(address, IpAddr::V6(six) if six.to_ipv4_mapped().is_some());
    (!is_mapped).then_some(address)
}

impl Cidr {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (start, length) = text.split_once('/')?;
        let is_number = !length.is_empty()
            && length.bytes().all(|byte| byte.is_ascii_digit())
            && (length == "0" || !length.starts_with('0'));
        let (address, length) = (parse_address(start)?, length.parse().ok().filter(|_| is_number)?);
        (length <= if address.is_ipv4() { 32 } else { 128 }).then_some(Self { address, length })
    }

    pub(crate) fn masked(self) -> Self {
        let (bits, size) = bits(self.address);
        let kept = size - u32::from(self.length);
        let bits = if kept >= 128 { 0 } else { bits >> kept << kept };
        let address = match self.address {
            IpAddr::V4(_) => IpAddr::V4(u32::try_from(bits).unwrap_or_default().into()),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from(bits)),
        };
        Self { address, length: self.length }
    }

    pub(crate) fn contains(self, address: IpAddr) -> bool {
        let within = Self { address, length: self.length };
        address.is_ipv4() == self.address.is_ipv4() && within.masked().address == self.masked().address
    }
}

fn bits(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(four) => (u32::from(four).into(), 32),
        IpAddr::V6(six) => (six.into(), 128),
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.length)
    }
}

impl Url {
    /// Parses an absolute URL, or an absolute path as in the first line of an HTTP request.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.is_empty() || text.chars().any(|character| character.is_ascii_control() || character == ' ') {
            return None;
        }
        let (before, query) = text.split_once('?').unwrap_or((text, ""));
        let (scheme, rest) = match before.split_once(':') {
            Some((scheme, rest)) if is_scheme(scheme) => (scheme, rest),
            Some(_) | None => ("", before),
        };
        if scheme.is_empty() && !rest.starts_with('/') {
            return None;
        }
        let (host, path) = match rest.strip_prefix("//").filter(|_| !scheme.is_empty()) {
            Some(authority) => authority.split_at(authority.find('/').unwrap_or(authority.len())),
            None => ("", rest),
        };
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        let url = Self {
            scheme: scheme.to_ascii_lowercase(),
            host: host.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
        };
        (url.has_valid_port() && percent_decode(path, false).is_some()).then_some(url)
    }

    /// Returns true if the port is a number or empty.
    fn has_valid_port(&self) -> bool {
        self.name_and_port().1.bytes().all(|byte| byte.is_ascii_digit())
    }

    pub(crate) fn name_and_port(&self) -> (&str, &str) {
        match self.host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((name, port)) => (name, port.trim_start_matches(':')),
            None => self.host.rsplit_once(':').unwrap_or((&self.host, "")),
        }
    }

    /// Returns the query parameters; invalid ones are left out.
    pub(crate) fn parameters(&self) -> BTreeMap<String, Vec<String>> {
        let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for pair in self.query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if let Some((name, value)) = percent_decode(name, true).zip(percent_decode(value, true)) {
                values.entry(name).or_default().push(value);
            }
        }
        values
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|character| character.is_ascii_alphanumeric() || "+-.".contains(character))
}

/// Decodes percent-encoding; `None` if it is invalid.
fn percent_decode(text: &str, plus_is_space: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                let digits = std::str::from_utf8(&digits).ok()?.to_owned();
                u8::from_str_radix(&digits, 16).ok()?
            }
            b'+' if plus_is_space => b' ',
            other => other,
        });
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
