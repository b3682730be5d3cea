//! Classification of IP addresses: those on the public internet, and those that could be internal machines that only the
//! broker can reach.
//!
//! An address that is not known to be public counts as internal. An IPv4 address embedded in an IPv6 address is
//! classified as IPv4.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Metadata service of a cloud provider (Azure), whose address looks public.
const METADATA: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);
/// Metadata service of a cloud provider (AWS), whose address looks private.
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

/// Returns the class of an address that is not public, as it reads before "address"; `None` if it is public.
pub(crate) fn non_public_class(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => non_public_class_v4(address),
        IpAddr::V6(address) => match embedded_ipv4(address) {
            Some(address) => non_public_class_v4(address),
            None => non_public_class_v6(address),
        },
    }
}

fn non_public_class_v4(address: Ipv4Addr) -> Option<&'static str> {
    let [first, second, third, _] = address.octets();
    match (first, second, third) {
        _ if address == METADATA => Some("metadata"),
        _ if address.is_broadcast() => Some("broadcast"),
        (0, ..) => Some("unspecified"),
        (127, ..) => Some("loopback"),
        (10, ..) | (172, 16..=31, _) | (192, 168, _) => Some("private"),
        (100, 64..=127, _) => Some("shared"),
        (169, 254, _) => Some("link-local"),
        (192, 0, 2) | (198, 51, 100) | (203, 0, 113) => Some("documentation"),
        (224..=239, ..) => Some("multicast"),
        // Protocol assignments, former 6to4 relays, benchmarks, and ranges that were never assigned.
        (192, 0, 0) | (192, 88, 99) | (198, 18..=19, _) | (240.., ..) => Some("reserved"),
        _ => None,
    }
}

fn non_public_class_v6(address: Ipv6Addr) -> Option<&'static str> {
    let [first, second, ..] = address.segments();
    match (first, second) {
        _ if address == METADATA_V6 => Some("metadata"),
        _ if address.is_unspecified() => Some("unspecified"),
        _ if address.is_loopback() => Some("loopback"),
        (0xfc00..=0xfdff, _) => Some("private"),
        (0xfe80..=0xfebf, _) => Some("link-local"),
        (0xff00.., _) => Some("multicast"),
        (0x2001, 0x0db8) | (0x3fff, 0..=0x0fff) => Some("documentation"),
        // The first block of the global range is for tunnels and other protocols; the rest is public.
        (0x2001, 0..=0x01ff) => Some("reserved"),
        (0x2000..=0x3fff, _) => None,
        _ => Some("reserved"),
    }
}

/// Returns the IPv4 address to which a packet to this address is translated.
fn embedded_ipv4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let at = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Some(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        // The unspecified and the loopback address of IPv6.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        // IPv4-compatible, IPv4-mapped, and NAT64.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => at(high, low),
        // Stateless translation.
        [0, 0, 0, 0, 0xffff, 0, high, low] => at(high, low),
        // 6to4.
        [0x2002, high, low, ..] => at(high, low),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_are_not_public_have_their_class() {
        for (address, class) in [
            ("0.0.0.0", "unspecified"),
            ("0.1.2.3", "unspecified"),
            ("127.0.0.1", "loopback"),
            ("127.255.0.1", "loopback"),
            ("10.0.0.1", "private"),
            ("172.16.0.1", "private"),
            ("172.31.255.255", "private"),
            ("192.168.1.1", "private"),
            ("100.64.0.1", "shared"),
            ("100.127.255.255", "shared"),
            ("100.100.100.200", "shared"),
            ("169.254.169.254", "link-local"),
            ("168.63.129.16", "metadata"),
            ("192.0.0.192", "reserved"),
            ("192.0.2.1", "documentation"),
            ("198.51.100.7", "documentation"),
            ("203.0.113.9", "documentation"),
            ("198.18.0.1", "reserved"),
            ("224.0.0.1", "multicast"),
            ("239.255.255.250", "multicast"),
            ("240.0.0.1", "reserved"),
            ("255.255.255.255", "broadcast"),
            ("::", "unspecified"),
            ("::1", "loopback"),
            ("fd00:ec2::254", "metadata"),
            ("fc00::1", "private"),
            ("fe80::1", "link-local"),
            ("fec0::1", "reserved"),
            ("ff02::1", "multicast"),
            ("2001:db8::1", "documentation"),
            ("3fff::1", "documentation"),
            ("100::1", "reserved"),
            ("2001::1", "reserved"),
            ("::ffff:127.0.0.1", "loopback"),
            ("::ffff:10.1.2.3", "private"),
            ("::10.1.2.3", "private"),
            ("::127.0.0.1", "loopback"),
            ("::ffff:0:10.0.0.1", "private"),
            ("64:ff9b::10.0.0.1", "private"),
            ("64:ff9b::169.254.169.254", "link-local"),
            ("64:ff9b:1::8.8.8.8", "reserved"),
            ("2002:7f00:1::", "loopback"),
            ("2002:a00:1::1", "private"),
        ] {
            assert_eq!(non_public_class(address.parse().unwrap()), Some(class), "{address}");
        }
    }

    #[test]
    fn public_addresses_have_no_class() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "2a00:1450:4001:81b::200e",
            "2001:4860:4860::8888",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
        ] {
            assert_eq!(non_public_class(address.parse().unwrap()), None, "{address}");
        }
    }
}
