//! Functions on IP addresses, CIDR ranges and URLs.

use std::net::IpAddr;
use std::rc::Rc;

use super::context::{EvaluationContext, EvaluationResult, Table};
use crate::evaluation_error::EvaluationError;
use crate::network::{Cidr, Url, parse_address};
use crate::value::{Cel, Entries, Key};

pub(super) const TABLE: Table = &[
    ("ip", ip),
    ("isIP", |arguments, _| test(arguments, |text| parse_address(text).is_some())),
    ("ip.isCanonical", is_canonical),
    ("family", |arguments, _| map_ip(arguments, |address| Cel::Int(if address.is_ipv4() { 4 } else { 6 }))),
    ("isUnspecified", |arguments, _| map_ip(arguments, |address| Cel::Bool(address.is_unspecified()))),
    ("isLoopback", |arguments, _| map_ip(arguments, |address| Cel::Bool(address.is_loopback()))),
    ("isLinkLocalMulticast", |arguments, _| map_ip(arguments, |address| Cel::Bool(is_local_multicast(address)))),
    ("isLinkLocalUnicast", |arguments, _| map_ip(arguments, |address| Cel::Bool(is_local_unicast(address)))),
    ("isGlobalUnicast", |arguments, _| map_ip(arguments, |address| Cel::Bool(is_global_unicast(address)))),
    ("cidr", |arguments, _| match arguments {
        [Cel::Text(text)] => Cidr::parse(text).map(Cel::Cidr).ok_or_else(|| invalid_cidr(text)),
        _ => Err(EvaluationError::no_such_overload()),
    }),
    ("isCIDR", |arguments, _| test(arguments, |text| Cidr::parse(text).is_some())),
    ("containsIP", contains_ip),
    ("containsCIDR", contains_range),
    ("prefixLength", |arguments, _| map_cidr(arguments, |range| Cel::Int(range.length.into()))),
    ("masked", |arguments, _| map_cidr(arguments, |range| Cel::Cidr(range.masked()))),
    ("url", |arguments, _| match arguments {
        [Cel::Text(text)] => Url::parse(text).map(|url| Cel::Url(Rc::new(url))).ok_or_else(|| invalid_url(text)),
        _ => Err(EvaluationError::no_such_overload()),
    }),
    ("isURL", |arguments, _| test(arguments, |text| Url::parse(text).is_some())),
    ("getScheme", |arguments, _| map_url(arguments, |url| Cel::text(url.scheme.as_str()))),
    ("getHost", |arguments, _| map_url(arguments, |url| Cel::text(url.host.as_str()))),
    ("getHostname", |arguments, _| map_url(arguments, |url| Cel::text(url.name_and_port().0))),
    ("getPort", |arguments, _| map_url(arguments, |url| Cel::text(url.name_and_port().1))),
    ("getEscapedPath", |arguments, _| map_url(arguments, |url| Cel::text(url.path.as_str()))),
    ("getQuery", |arguments, context| {
        if let [Cel::Url(url)] = arguments {
            context.steps.take(url.query.len())?;
        }
        map_url(arguments, parameters)
    }),
];

fn test<'a>(arguments: &[Cel<'a>], holds: fn(&str) -> bool) -> EvaluationResult<'a> {
    match arguments {
        [Cel::Text(text)] => Ok(Cel::Bool(holds(text))),
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn map_ip<'a>(arguments: &[Cel<'a>], function: fn(IpAddr) -> Cel<'static>) -> EvaluationResult<'a> {
    match arguments {
        [Cel::Ip(address)] => Ok(function(*address)),
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn map_cidr<'a>(arguments: &[Cel<'a>], function: fn(Cidr) -> Cel<'static>) -> EvaluationResult<'a> {
    match arguments {
        [Cel::Cidr(range)] => Ok(function(*range)),
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn map_url<'a>(arguments: &[Cel<'a>], function: fn(&Url) -> Cel<'static>) -> EvaluationResult<'a> {
    match arguments {
        [Cel::Url(url)] => Ok(function(url)),
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn invalid_address(text: &str) -> EvaluationError {
    let message = format!(
        "IP Address {text:?} parse error during conversion from string: ParseAddr({text:?}): unable to parse IP"
    );
    EvaluationError::with_redacted(message, "IP Address parse error during conversion from string")
}

fn invalid_cidr(text: &str) -> EvaluationError {
    let words = "network address parse error during conversion from string";
    EvaluationError::with_redacted(format!("{words}: netip.ParsePrefix({text:?}): no '/'"), words)
}

fn invalid_url(text: &str) -> EvaluationError {
    let words = "URL parse error during conversion from string";
    EvaluationError::with_redacted(format!("{words}: parse {text:?}: invalid URI for request"), words)
}

/// Parses an address, or returns the address of a range.
fn ip<'a>(arguments: &[Cel<'a>], _context: &mut EvaluationContext) -> EvaluationResult<'a> {
    match arguments {
        [Cel::Text(text)] => parse_address(text).map(Cel::Ip).ok_or_else(|| invalid_address(text)),
        [Cel::Cidr(range)] => Ok(Cel::Ip(range.address)),
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn is_canonical<'a>(arguments: &[Cel<'a>], _context: &mut EvaluationContext) -> EvaluationResult<'a> {
    match arguments {
        [Cel::Text(text)] => match parse_address(text) {
            Some(address) => Ok(Cel::Bool(address.to_string() == **text)),
            None => Err(invalid_address(text)),
        },
        _ => Err(EvaluationError::no_such_overload()),
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

fn contains_ip<'a>(arguments: &[Cel<'a>], _context: &mut EvaluationContext) -> EvaluationResult<'a> {
    match arguments {
        [Cel::Cidr(range), Cel::Ip(address)] => Ok(Cel::Bool(range.contains(*address))),
        [Cel::Cidr(range), Cel::Text(text)] => match parse_address(text) {
            Some(address) => Ok(Cel::Bool(range.contains(address))),
            None => Err(invalid_address(text)),
        },
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn contains_range<'a>(arguments: &[Cel<'a>], _context: &mut EvaluationContext) -> EvaluationResult<'a> {
    let (range, other) = match arguments {
        [Cel::Cidr(range), Cel::Cidr(other)] => (range, *other),
        [Cel::Cidr(range), Cel::Text(text)] => (range, Cidr::parse(text).ok_or_else(|| invalid_cidr(text))?),
        _ => return Err(EvaluationError::no_such_overload()),
    };
    Ok(Cel::Bool(range.length <= other.length && range.contains(other.address)))
}

fn parameters(url: &Url) -> Cel<'static> {
    let values = |values: Vec<String>| Cel::list(values.into_iter().map(Cel::text).collect());
    let entries = url.parameters().into_iter().map(|(name, texts)| (Key::Text(name), values(texts))).collect();
    Cel::Map(Entries::Owned(Rc::new(entries)))
}
