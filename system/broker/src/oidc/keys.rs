//! Public keys of a provider, from its JSON Web Key Set.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey};
use serde::Deserialize;

/// Limit on the keys of a provider.
const KEYS_MAX: usize = 64;
/// Length of a coordinate of P-256.
const COORDINATE_BYTES: usize = 32;
/// First byte of a point that is not compressed.
const UNCOMPRESSED: u8 = 4;

/// Algorithm of a signature. Others are not accepted: neither `none`, nor those whose key is a shared secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algorithm {
    /// RSA with PKCS #1 v1.5 and SHA-256.
    Rs256,
    /// ECDSA with P-256 and SHA-256.
    Es256,
}

impl Algorithm {
    /// Returns the algorithm with this name.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        match name {
            "RS256" => Some(Self::Rs256),
            "ES256" => Some(Self::Es256),
            _ => None,
        }
    }
}

/// A public key. It verifies signatures of its own algorithm only; the header of a token cannot choose another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PublicKey {
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    P256 { point: Vec<u8> },
}

impl PublicKey {
    fn from_jwk(jwk: &Jwk) -> Option<Self> {
        if jwk.usage.as_deref().is_some_and(|usage| usage != "sig") {
            return None;
        }
        let decode = |text: &Option<String>| URL_SAFE_NO_PAD.decode(text.as_deref()?).ok();
        match (jwk.key_type.as_str(), jwk.algorithm.as_deref()) {
            ("RSA", None | Some("RS256")) => {
                let trim = |bytes: Vec<u8>| bytes.into_iter().skip_while(|byte| *byte == 0).collect();
                Some(Self::Rsa { modulus: trim(decode(&jwk.n)?), exponent: trim(decode(&jwk.e)?) })
            }
            ("EC", None | Some("ES256")) if jwk.curve.as_deref() == Some("P-256") => {
                let (x, y) = (decode(&jwk.x)?, decode(&jwk.y)?);
                let is_whole = x.len() == COORDINATE_BYTES && y.len() == COORDINATE_BYTES;
                is_whole.then(|| Self::P256 { point: [&[UNCOMPRESSED][..], &x, &y].concat() })
            }
            _ => None,
        }
    }

    /// Returns true if the signature of the message was made with this key and this algorithm.
    pub(super) fn verifies(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        match (self, algorithm) {
            (Self::Rsa { modulus, exponent }, Algorithm::Rs256) => {
                let key = RsaPublicKeyComponents { n: modulus, e: exponent };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature).is_ok()
            }
            (Self::P256 { point }, Algorithm::Es256) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature).is_ok()
            }
            (Self::Rsa { .. }, Algorithm::Es256) | (Self::P256 { .. }, Algorithm::Rs256) => false,
        }
    }
}

#[derive(Deserialize)]
struct Jwk {
    #[serde(rename = "kty")]
    key_type: String,
    #[serde(rename = "use")]
    usage: Option<String>,
    #[serde(rename = "alg")]
    algorithm: Option<String>,
    #[serde(rename = "kid", default)]
    id: String,
    #[serde(rename = "crv")]
    curve: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

#[derive(Deserialize)]
struct JwkSet {
    keys: Vec<serde_json::Value>,
}

/// The usable keys of a provider, by their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KeySet(BTreeMap<String, PublicKey>);

impl KeySet {
    /// Reads a JSON Web Key Set. Keys of other types and for other purposes are ignored, so that the set may be empty.
    pub(super) fn parse(json: &[u8]) -> Result<Self, String> {
        let set: JwkSet = serde_json::from_slice(json).map_err(|error| format!("not a set of keys: {error}"))?;
        let keys = set.keys.into_iter().filter_map(|key| {
            let jwk: Jwk = serde_json::from_value(key).ok()?;
            Some((jwk.id.clone(), PublicKey::from_jwk(&jwk)?))
        });
        Ok(Self(keys.take(KEYS_MAX).collect()))
    }

    /// Returns true if no key is usable.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the key with this id. A token without an id is verified with the only key, if there is just one.
    pub(super) fn find(&self, id: Option<&str>) -> Option<&PublicKey> {
        match id {
            Some(id) => self.0.get(id),
            None if self.0.len() == 1 => self.0.values().next(),
            None => None,
        }
    }
}
