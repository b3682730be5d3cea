//! Address of the client behind proxies that the operator trusts.
//!
//! A proxy appends the address of its own client to `X-Forwarded-For`. So the header is read from its end, and only as
//! far as the proxies are trusted: the rest may be invented by the client.

use std::net::IpAddr;

use http::HeaderMap;
use thiserror::Error;

const FORWARDED_FOR: &str = "x-forwarded-for";

/// Addresses of proxies whose `X-Forwarded-For` is believed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<Network>);

/// The text is not a list of addresses and networks.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0} is neither an address nor a network like 10.0.0.0/8")]
pub struct InvalidNetwork(String);

impl TrustedProxies {
    /// Parses addresses and networks that are separated by commas.
    pub fn parse(text: &str) -> Result<Self, InvalidNetwork> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        parts
            .map(|part| Network::parse(part).ok_or_else(|| InvalidNetwork(part.to_owned())))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Returns the address of the client: the last address in `X-Forwarded-For` that is not a trusted proxy. Without
    /// trust in the peer it is the peer.
    pub(crate) fn client_address(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer.to_canonical();
        if !self.contains(client) {
            return client;
        }
        let values = headers.get_all(FORWARDED_FOR).iter().filter_map(|value| value.to_str().ok());
        let addresses: Vec<&str> = values.flat_map(|value| value.split(',')).map(str::trim).collect();
        for address in addresses.into_iter().rev() {
            let Ok(address) = address.parse::<IpAddr>() else { break };
            client = address.to_canonical();
            if !self.contains(client) {
                break;
            }
        }
        client
    }

    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }
}

/// Addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    prefix_bits: u32,
}

impl Network {
    fn parse(text: &str) -> Option<Self> {
        let (address, prefix_bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().ok()?;
        let bits_max = if address.is_ipv4() { 32 } else { 128 };
        let prefix_bits =
            prefix_bits.map_or(Some(bits_max), |bits| bits.parse().ok().filter(|bits| *bits <= bits_max))?;
        Some(Self { address, prefix_bits })
    }

    fn contains(&self, address: IpAddr) -> bool {
        let first_bits =
            |bits: u128, width: u32| if self.prefix_bits == 0 { 0 } else { bits >> (width - self.prefix_bits) };
        match (self.address, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                first_bits(network.to_bits().into(), 32) == first_bits(address.to_bits().into(), 32)
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                first_bits(network.to_bits(), 128) == first_bits(address.to_bits(), 128)
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn client(trusted: &str, peer: &str, forwarded: &[&'static str]) -> String {
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append(FORWARDED_FOR, HeaderValue::from_static(value));
        }
        TrustedProxies::parse(trusted).unwrap().client_address(peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn the_client_is_the_last_address_that_is_not_a_trusted_proxy() {
        assert_eq!(client("10.0.0.0/8", "10.1.1.1", &["1.1.1.1, 2.2.2.2, 10.9.9.9"]), "2.2.2.2");
        assert_eq!(client("10.0.0.0/8", "10.1.1.1", &["1.1.1.1", "2.2.2.2"]), "2.2.2.2");
        assert_eq!(client("10.0.0.0/8, fd00::/8", "fd00::1", &["2001:db8::1"]), "2001:db8::1");
        assert_eq!(client("0.0.0.0/0", "10.1.1.1", &["1.1.1.1, 2.2.2.2"]), "1.1.1.1");
        assert_eq!(client("10.0.0.1", "::ffff:10.0.0.1", &["::ffff:3.3.3.3"]), "3.3.3.3");
    }

    #[test]
    fn without_trust_or_with_an_invalid_header_the_peer_is_the_client() {
        assert_eq!(client("", "10.1.1.1", &["1.1.1.1"]), "10.1.1.1");
        assert_eq!(client("10.0.0.1", "10.0.0.2", &["1.1.1.1"]), "10.0.0.2");
        assert_eq!(client("10.0.0.0/8", "10.1.1.1", &[]), "10.1.1.1");
        assert_eq!(client("10.0.0.0/8", "10.1.1.1", &["1.1.1.1, unknown"]), "10.1.1.1");
    }

    #[test]
    fn texts_that_are_no_networks_are_named() {
        for text in ["10.0.0.0/33", "10.0.0", "::/129", "proxy", "10.0.0.0/"] {
            assert_eq!(TrustedProxies::parse(&format!("10.0.0.1,{text}")), Err(InvalidNetwork(text.to_owned())));
        }
    }
}
