//! Subject of a client certificate: its common name is the user, its organizations are groups.
//!
//! The certificate was verified before; here only its fields are parsed up to the subject.

/// User of a verified client certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Common name.
    pub user: String,
    /// Organizations, in order.
    pub groups: Vec<String>,
}

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const VERSION: u8 = 0xa0;
const OBJECT_ID: u8 = 0x06;
/// The ids of a common name and of an organization.
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
const ORGANIZATION: [u8; 3] = [0x55, 0x04, 0x0a];

impl Subject {
    /// Reads the subject of a certificate in DER. `None` if it has none.
    #[must_use]
    pub fn from_certificate(der: &[u8]) -> Option<Self> {
        let (_, certificate, _) = element(der).filter(|(tag, ..)| *tag == SEQUENCE)?;
        let (_, mut fields, _) = element(certificate).filter(|(tag, ..)| *tag == SEQUENCE)?;
        if let Some((VERSION, _, rest)) = element(fields) {
            fields = rest;
        }
        // Serial number, algorithm, issuer and validity come before the subject.
        for _ in 0..4 {
            (_, _, fields) = element(fields)?;
        }
        let (_, names, _) = element(fields).filter(|(tag, ..)| *tag == SEQUENCE)?;
        let mut subject = Self { user: String::new(), groups: Vec::new() };
        subject.read(names)?;
        (!subject.user.is_empty()).then_some(subject)
    }

    fn read(&mut self, mut names: &[u8]) -> Option<()> {
        while !names.is_empty() {
            let (_, mut set, rest) = element(names).filter(|(tag, ..)| *tag == SET)?;
            while !set.is_empty() {
                let (_, pair, further) = element(set)?;
                let (_, id, value) = element(pair).filter(|(tag, ..)| *tag == OBJECT_ID)?;
                let (_, value, _) = element(value)?;
                let text = String::from_utf8_lossy(value).into_owned();
                if id == COMMON_NAME {
                    self.user = text;
                } else if id == ORGANIZATION {
                    self.groups.push(text);
                }
                set = further;
            }
            names = rest;
        }
        Some(())
    }
}

/// The first element of a sequence: its tag, its content, and what follows.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = if *first < 0x80 {
        (usize::from(*first), rest)
    } else {
        let count = usize::from(first & 0x7f);
        if count == 0 || count > 4 {
            return None;
        }
        let (digits, rest) = rest.split_at_checked(count)?;
        (digits.iter().fold(0_usize, |length, digit| (length << 8) | usize::from(*digit)), rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((*tag, content, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subject_of_a_certificate_is_read() {
        let mut names = rcgen::DistinguishedName::new();
        names.push(rcgen::DnType::OrganizationName, "system:masters");
        names.push(rcgen::DnType::CommonName, "admin");
        let mut wanted = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("valid names");
        wanted.distinguished_name = names;
        let key = rcgen::KeyPair::generate().expect("a key");
        let certificate = wanted.self_signed(&key).expect("a certificate");
        let subject = Subject::from_certificate(certificate.der()).expect("a subject");
        assert_eq!(subject, Subject { user: "admin".to_owned(), groups: vec!["system:masters".to_owned()] });
    }

    #[test]
    fn an_invalid_certificate_has_no_subject() {
        assert_eq!(Subject::from_certificate(b""), None);
        assert_eq!(Subject::from_certificate(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
        assert_eq!(Subject::from_certificate(&[0x30, 0x03, 0x30, 0x01, 0x02]), None);
    }
}
