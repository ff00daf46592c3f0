//! Which addresses are public.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether the address belongs to a public unicast host. Every address that embeds another is
/// refused, because what it reaches depends on the network.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || matches!((a, b, c), (0 | 224.., ..))
        || (a == 100 && (64..128).contains(&b))
        || (a, b, c) == (192, 0, 0)
        || (a, b, c) == (192, 88, 99)
        || (a == 198 && (b == 18 || b == 19));
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    // 2000::/3 is all that is given out; within it, tunnels and documentation are special.
    let global = a & 0xe000 == 0x2000;
    let teredo_and_protocols = a == 0x2001 && b < 0x0200;
    let documentation = (a == 0x2001 && b == 0x0db8) || (a == 0x3fff && b < 0x1000);
    let six_to_four = a == 0x2002;
    global && !teredo_and_protocols && !documentation && !six_to_four
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_unicast_addresses_pass() {
        for (text, expected) in [
            ("1.1.1.1", true),
            ("93.184.215.14", true),
            ("100.63.255.255", true),
            ("172.32.0.1", true),
            ("0.0.0.0", false),
            ("0.1.2.3", false),
            ("10.0.0.1", false),
            ("100.64.0.1", false),
            ("127.0.0.1", false),
            ("169.254.169.254", false),
            ("172.16.0.1", false),
            ("192.0.0.8", false),
            ("192.0.2.1", false),
            ("192.88.99.1", false),
            ("192.168.1.1", false),
            ("198.18.0.1", false),
            ("224.0.0.1", false),
            ("255.255.255.255", false),
            ("2606:4700:4700::1111", true),
            ("::", false),
            ("::1", false),
            ("::ffff:169.254.169.254", false),
            ("::ffff:1.1.1.1", false),
            ("64:ff9b::a9fe:a9fe", false),
            ("64:ff9b:1::1", false),
            ("2001::1", false),
            ("2001:db8::1", false),
            ("2002:a9fe:a9fe::1", false),
            ("3fff::1", false),
            ("fc00::1", false),
            ("fd00:ec2::254", false),
            ("fe80::1", false),
            ("ff02::1", false),
        ] {
            assert_eq!(is_public(text.parse().unwrap()), expected, "{text}");
        }
    }
}
