//! Addresses, ranges of them, and locators.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::rc::Rc;

use super::{Outcome, Table, Tools};
use crate::failure::Failure;
use crate::value::{Cel, Entries, Key};

pub(super) const TABLE: Table = &[
    ("ip", ip),
    ("isIP", |arguments, _| test(arguments, |text| address(text).is_some())),
    ("ip.isCanonical", is_canonical),
    ("family", |arguments, _| of_ip(arguments, |address| Cel::Int(if address.is_ipv4() { 4 } else { 6 }))),
    ("isUnspecified", |arguments, _| of_ip(arguments, |address| Cel::Bool(address.is_unspecified()))),
    ("isLoopback", |arguments, _| of_ip(arguments, |address| Cel::Bool(address.is_loopback()))),
    ("isLinkLocalMulticast", |arguments, _| of_ip(arguments, |address| Cel::Bool(is_local_multicast(address)))),
    ("isLinkLocalUnicast", |arguments, _| of_ip(arguments, |address| Cel::Bool(is_local_unicast(address)))),
    ("isGlobalUnicast", |arguments, _| of_ip(arguments, |address| Cel::Bool(is_global_unicast(address)))),
    ("cidr", |arguments, _| match arguments {
        [Cel::Text(text)] => Cidr::parse(text).map(Cel::Cidr).ok_or_else(|| no_range(text)),
        _ => Err(Failure::no_such_overload()),
    }),
    ("isCIDR", |arguments, _| test(arguments, |text| Cidr::parse(text).is_some())),
    ("containsIP", contains_ip),
    ("containsCIDR", contains_range),
    ("prefixLength", |arguments, _| of_range(arguments, |range| Cel::Int(range.length.into()))),
    ("masked", |arguments, _| of_range(arguments, |range| Cel::Cidr(range.masked()))),
    ("url", |arguments, _| match arguments {
        [Cel::Text(text)] => Url::parse(text).map(|url| Cel::Url(Rc::new(url))).ok_or_else(|| no_locator(text)),
        _ => Err(Failure::no_such_overload()),
    }),
    ("isURL", |arguments, _| test(arguments, |text| Url::parse(text).is_some())),
    ("getScheme", |arguments, _| of_url(arguments, |url| Cel::text(url.scheme.as_str()))),
    ("getHost", |arguments, _| of_url(arguments, |url| Cel::text(url.host.as_str()))),
    ("getHostname", |arguments, _| of_url(arguments, |url| Cel::text(url.name_and_port().0))),
    ("getPort", |arguments, _| of_url(arguments, |url| Cel::text(url.name_and_port().1))),
    ("getEscapedPath", |arguments, _| of_url(arguments, |url| Cel::text(url.path.as_str()))),
    ("getQuery", |arguments, tools| {
        if let [Cel::Url(url)] = arguments {
            tools.steps.take(url.query.len())?;
        }
        of_url(arguments, Url::parameters)
    }),
];

/// A range of addresses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    address: IpAddr,
    length: u8,
}

/// A locator, in its parts.
#[derive(Clone, PartialEq, Eq)]
pub struct Url {
    scheme: String,
    host: String,
    path: String,
    query: String,
}

fn test<'a>(arguments: &[Cel<'a>], holds: fn(&str) -> bool) -> Outcome<'a> {
    match arguments {
        [Cel::Text(text)] => Ok(Cel::Bool(holds(text))),
        _ => Err(Failure::no_such_overload()),
    }
}

fn of_ip<'a>(arguments: &[Cel<'a>], of: fn(IpAddr) -> Cel<'static>) -> Outcome<'a> {
    match arguments {
        [Cel::Ip(address)] => Ok(of(*address)),
        _ => Err(Failure::no_such_overload()),
    }
}

fn of_range<'a>(arguments: &[Cel<'a>], of: fn(Cidr) -> Cel<'static>) -> Outcome<'a> {
    match arguments {
        [Cel::Cidr(range)] => Ok(of(*range)),
        _ => Err(Failure::no_such_overload()),
    }
}

fn of_url<'a>(arguments: &[Cel<'a>], of: fn(&Url) -> Cel<'static>) -> Outcome<'a> {
    match arguments {
        [Cel::Url(url)] => Ok(of(url)),
        _ => Err(Failure::no_such_overload()),
    }
}

/// An address without a zone, and not one of IPv4 within IPv6.
fn address(text: &str) -> Option<IpAddr> {
    let address: IpAddr = text.parse().ok()?;
    let is_mapped = matches!(address, IpAddr::V6(six) if six.to_ipv4_mapped().is_some());
    (!is_mapped).then_some(address)
}

fn no_address(text: &str) -> Failure {
    let said = format!(
        "IP Address {text:?} parse error during conversion from string: ParseAddr({text:?}): unable to parse IP"
    );
    Failure::about(said, "IP Address parse error during conversion from string")
}

fn no_range(text: &str) -> Failure {
    let words = "network address parse error during conversion from string";
    Failure::about(format!("{words}: netip.ParsePrefix({text:?}): no '/'"), words)
}

fn no_locator(text: &str) -> Failure {
    let words = "URL parse error during conversion from string";
    Failure::about(format!("{words}: parse {text:?}: invalid URI for request"), words)
}

/// The address of a text, or the one that a range begins with.
fn ip<'a>(arguments: &[Cel<'a>], _tools: &mut Tools) -> Outcome<'a> {
    match arguments {
        [Cel::Text(text)] => address(text).map(Cel::Ip).ok_or_else(|| no_address(text)),
        [Cel::Cidr(range)] => Ok(Cel::Ip(range.address)),
        _ => Err(Failure::no_such_overload()),
    }
}

fn is_canonical<'a>(arguments: &[Cel<'a>], _tools: &mut Tools) -> Outcome<'a> {
    match arguments {
        [Cel::Text(text)] => match address(text) {
            Some(address) => Ok(Cel::Bool(address.to_string() == **text)),
            None => Err(no_address(text)),
        },
        _ => Err(Failure::no_such_overload()),
    }
}

fn is_local_multicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => four.octets()[..3] == [224, 0, 0],
        IpAddr::V6(six) => six.segments()[0] & 0xff0f == 0xff02,
    }
}

fn is_local_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => four.is_link_local(),
        IpAddr::V6(six) => six.segments()[0] & 0xffc0 == 0xfe80,
    }
}

fn is_global_unicast(address: IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(four) if four.is_broadcast());
    !(is_broadcast
        || address.is_unspecified()
        || address.is_loopback()
        || address.is_multicast()
        || is_local_unicast(address))
}

impl Cidr {
    fn parse(text: &str) -> Option<Self> {
        let (start, length) = text.split_once('/')?;
        let is_number = !length.is_empty()
            && length.bytes().all(|byte| byte.is_ascii_digit())
            && (length == "0" || !length.starts_with('0'));
        let (address, length) = (address(start)?, length.parse().ok().filter(|_| is_number)?);
        (length <= if address.is_ipv4() { 32 } else { 128 }).then_some(Self { address, length })
    }

    fn masked(self) -> Self {
        let (bits, size) = bits(self.address);
        let kept = size - u32::from(self.length);
        let bits = if kept >= 128 { 0 } else { bits >> kept << kept };
        let address = match self.address {
            IpAddr::V4(_) => IpAddr::V4(u32::try_from(bits).unwrap_or_default().into()),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from(bits)),
        };
        Self { address, length: self.length }
    }

    fn has(self, address: IpAddr) -> bool {
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

fn contains_ip<'a>(arguments: &[Cel<'a>], _tools: &mut Tools) -> Outcome<'a> {
    match arguments {
        [Cel::Cidr(range), Cel::Ip(address)] => Ok(Cel::Bool(range.has(*address))),
        [Cel::Cidr(range), Cel::Text(text)] => match address(text) {
            Some(address) => Ok(Cel::Bool(range.has(address))),
            None => Err(no_address(text)),
        },
        _ => Err(Failure::no_such_overload()),
    }
}

fn contains_range<'a>(arguments: &[Cel<'a>], _tools: &mut Tools) -> Outcome<'a> {
    let (range, other) = match arguments {
        [Cel::Cidr(range), Cel::Cidr(other)] => (range, *other),
        [Cel::Cidr(range), Cel::Text(text)] => (range, Cidr::parse(text).ok_or_else(|| no_range(text))?),
        _ => return Err(Failure::no_such_overload()),
    };
    Ok(Cel::Bool(range.length <= other.length && range.has(other.address)))
}

impl Url {
    /// What is absolute, or a path that begins at the root, as in the first line of a request.
    fn parse(text: &str) -> Option<Self> {
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
        (url.has_port() && decoded(path, false).is_some()).then_some(url)
    }

    /// A port is a number, or empty.
    fn has_port(&self) -> bool {
        self.name_and_port().1.bytes().all(|byte| byte.is_ascii_digit())
    }

    fn name_and_port(&self) -> (&str, &str) {
        match self.host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((name, port)) => (name, port.trim_start_matches(':')),
            None => self.host.rsplit_once(':').unwrap_or((&self.host, "")),
        }
    }

    fn parameters(&self) -> Cel<'static> {
        let mut values: BTreeMap<String, Vec<Cel<'static>>> = BTreeMap::new();
        for pair in self.query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if let Some((name, value)) = decoded(name, true).zip(decoded(value, true)) {
                values.entry(name).or_default().push(Cel::text(value));
            }
        }
        let entries = values.into_iter().map(|(name, values)| (Key::Text(name), Cel::list(values))).collect();
        Cel::Map(Entries::Made(Rc::new(entries)))
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|character| character.is_ascii_alphanumeric() || "+-.".contains(character))
}

/// With `%41` as `A`; `None` if something is not right about them.
fn decoded(text: &str, plus_is_space: bool) -> Option<String> {
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
