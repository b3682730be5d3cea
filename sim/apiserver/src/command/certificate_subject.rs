//! The subject of a certificate, copied from its request as it is: a subject may have several organizations, which the library
//! for certificates keeps only one of.

use rcgen::SigningKey;

const SEQUENCE: u8 = 0x30;
const BIT_STRING: u8 = 0x03;

/// An element in DER.
#[derive(Clone, Copy, Debug)]
struct Element<'a> {
    /// The element with its tag and length.
    whole: &'a [u8],
    content: &'a [u8],
}

/// Returns a certificate with the subject of its request, signed again. Both are DER.
pub(super) fn with_subject_of(request: &[u8], certificate: &[u8], key: &impl SigningKey) -> Option<Vec<u8>> {
    let [info, ..] = elements(elements(request)?.first()?.content)?[..] else { return None };
    let [_version, subject, ..] = elements(info.content)?[..] else { return None };
    let [unsigned, algorithm, _signature] = elements(elements(certificate)?.first()?.content)?[..] else { return None };
    let mut fields: Vec<&[u8]> = elements(unsigned.content)?.into_iter().map(|field| field.whole).collect();
    // Version, serial number, algorithm, issuer and validity come before the subject.
    *fields.get_mut(5)? = subject.whole;
    let unsigned = encode(SEQUENCE, &fields.concat());
    let signature = [&[0], key.sign(&unsigned).ok()?.as_slice()].concat();
    Some(encode(SEQUENCE, &[&unsigned, algorithm.whole, &encode(BIT_STRING, &signature)].concat()))
}

/// Splits a sequence of elements.
fn elements(mut bytes: &[u8]) -> Option<Vec<Element<'_>>> {
    let mut elements = Vec::new();
    while let [_tag, first, rest @ ..] = bytes {
        let (length, header) = if *first < 0x80 {
            (usize::from(*first), 2)
        } else {
            let count = usize::from(first & 0x7f);
            let digits = rest.get(..count).filter(|digits| (1..=4).contains(&digits.len()))?;
            (digits.iter().fold(0_usize, |length, digit| (length << 8) | usize::from(*digit)), 2 + count)
        };
        let (whole, others) = bytes.split_at_checked(header.checked_add(length)?)?;
        elements.push(Element { whole, content: whole.get(header..)? });
        bytes = others;
    }
    bytes.is_empty().then_some(elements)
}

fn encode(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let digits: Vec<u8> = length.to_be_bytes().into_iter().skip_while(|digit| *digit == 0).collect();
    let short = u8::try_from(length).ok().filter(|length| *length < 0x80);
    let length = match short {
        Some(length) => vec![length],
        // A length has at most eight digits.
        None => [vec![0x80 | u8::try_from(digits.len()).unwrap_or_default()], digits].concat(),
    };
    [&[tag], length.as_slice(), content].concat()
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
    use sindri_apiserver::Subject;

    use super::*;

    #[test]
    fn a_certificate_gets_the_whole_subject_of_its_request() {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        // The type by its number is another one for the library, so that the request has two organizations.
        params.distinguished_name.push(DnType::OrganizationName, "dev");
        params.distinguished_name.push(DnType::CustomDnType(vec![2, 5, 4, 10]), "ops");
        params.distinguished_name.push(DnType::CommonName, "jane");
        let request = params.serialize_request(&key).expect("a request");
        let certificate = CertificateParams::default().self_signed(&key).expect("a certificate");
        let copied = with_subject_of(request.der(), certificate.der(), &key).expect("a certificate");
        let subject = Subject::from_certificate(&copied).expect("a subject");
        assert_eq!((subject.user.as_str(), subject.groups), ("jane", vec!["dev".to_owned(), "ops".to_owned()]));
        assert!(with_subject_of(b"", certificate.der(), &key).is_none());
        assert!(with_subject_of(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff], certificate.der(), &key).is_none());
    }
}
