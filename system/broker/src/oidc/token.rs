//! Verification of one token: a JSON Web Token, signed with RS256 or ES256.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};
use sindri_model::wire::AdminRole;
use thiserror::Error;

use super::keys::{Algorithm, PublicKey};
use super::settings::OidcSettings;

/// Limit on the length of a token.
const TOKEN_CHARS_MAX: usize = 16 * 1024;
/// Limit on the length of a subject, which is part of a name.
const SUBJECT_CHARS_MAX: usize = 200;
/// Difference between the clocks of the provider and of the broker that is tolerated.
const CLOCK_SKEW_SECONDS: f64 = 60.0;

/// Person whom a token names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Person {
    /// Subject: the id of the person at the provider.
    pub subject: String,
    /// Role that the claims give.
    pub role: AdminRole,
}

/// Reason for which a token is not accepted.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum TokenError {
    #[error("it is malformed")]
    Malformed,
    #[error("it is an access token: send the ID token")]
    AccessToken,
    #[error("it must be signed with RS256 or ES256")]
    Algorithm,
    #[error("it was signed with a key that the provider does not publish")]
    UnknownKey,
    #[error("its signature is wrong")]
    Signature,
    #[error("it was issued by another provider")]
    Issuer,
    #[error("it is for another audience")]
    Audience,
    #[error("it was issued to another client")]
    AuthorizedParty,
    #[error("it has expired; log in again")]
    Expired,
    #[error("it is not valid yet")]
    NotYetValid,
    #[error("it has no usable subject")]
    Subject,
    #[error("its claims give no role here")]
    NoRole,
    #[error("the keys of the provider cannot be read")]
    NoKeys,
}

/// Returns true if a credential has the form of a token: a header, claims and a signature. No key has it.
pub(crate) fn is_token(text: &str) -> bool {
    text.starts_with("eyJ") && text.bytes().filter(|byte| *byte == b'.').count() == 2
}

/// A token whose signature was not verified yet.
#[derive(Debug)]
pub(super) struct UnverifiedToken<'a> {
    algorithm: Algorithm,
    key_id: Option<String>,
    signed: &'a str,
    claims: &'a str,
    signature: Vec<u8>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    /// Extensions that a receiver must understand. None are.
    crit: Option<Value>,
}

impl<'a> UnverifiedToken<'a> {
    /// Parses the header of a token.
    pub(super) fn parse(text: &'a str) -> Result<Self, TokenError> {
        if text.len() > TOKEN_CHARS_MAX {
            return Err(TokenError::Malformed);
        }
        let (signed, signature) = text.rsplit_once('.').ok_or(TokenError::Malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(TokenError::Malformed)?;
        let header: Header = serde_json::from_slice(&decode(header)?).map_err(|_| TokenError::Malformed)?;
        if header.crit.is_some() || claims.contains('.') {
            return Err(TokenError::Malformed);
        }
        if header.typ.as_deref().is_some_and(is_access_token) {
            return Err(TokenError::AccessToken);
        }
        let algorithm = Algorithm::from_name(&header.alg).ok_or(TokenError::Algorithm)?;
        Ok(Self { algorithm, key_id: header.kid, signed, claims, signature: decode(signature)? })
    }

    /// Returns the id of the key with which the token is said to be signed.
    pub(super) fn key_id(&self) -> Option<&str> {
        self.key_id.as_deref()
    }

    /// Verifies the signature and the claims; returns the person.
    pub(super) fn verify(
        &self,
        key: &PublicKey,
        settings: &OidcSettings,
        now: Timestamp,
    ) -> Result<Person, TokenError> {
        if !key.verifies(self.algorithm, self.signed.as_bytes(), &self.signature) {
            return Err(TokenError::Signature);
        }
        let claims = serde_json::from_slice(&decode(self.claims)?).map_err(|_| TokenError::Malformed)?;
        check_claims(&claims, settings, now.as_second() as f64)
    }
}

/// Returns true for the type of an access token (RFC 9068), which other services receive too.
fn is_access_token(header_type: &str) -> bool {
    let header_type = header_type.to_ascii_lowercase();
    header_type.strip_prefix("application/").unwrap_or(&header_type) == "at+jwt"
}

fn decode(text: &str) -> Result<Vec<u8>, TokenError> {
    URL_SAFE_NO_PAD.decode(text).map_err(|_| TokenError::Malformed)
}

fn check_claims(claims: &Map<String, Value>, settings: &OidcSettings, now: f64) -> Result<Person, TokenError> {
    if claims.get("iss").and_then(Value::as_str) != Some(&settings.issuer) {
        return Err(TokenError::Issuer);
    }
    let audiences = texts(claims.get("aud"));
    if !audiences.contains(&settings.audience.as_str()) {
        return Err(TokenError::Audience);
    }
    // With several audiences the token must say to which client it was issued.
    let authorized_party = claims.get("azp");
    if (authorized_party.is_some() || audiences.len() > 1)
        && authorized_party.and_then(Value::as_str) != Some(&settings.audience)
    {
        return Err(TokenError::AuthorizedParty);
    }
    let expires = read_time(claims, "exp")?.ok_or(TokenError::Malformed)?;
    if expires + CLOCK_SKEW_SECONDS <= now {
        return Err(TokenError::Expired);
    }
    for claim in ["nbf", "iat"] {
        if read_time(claims, claim)?.is_some_and(|begins| begins - CLOCK_SKEW_SECONDS > now) {
            return Err(TokenError::NotYetValid);
        }
    }
    let subject = claims.get("sub").and_then(Value::as_str).filter(|subject| is_subject(subject));
    let subject = subject.ok_or(TokenError::Subject)?.to_owned();
    let roles = texts(claims.get(&settings.role_claim));
    let has_one_of = |values: &[String]| values.iter().any(|value| roles.contains(&value.as_str()));
    let role = match (has_one_of(&settings.admin_values), has_one_of(&settings.reader_values)) {
        (true, _) => AdminRole::Admin,
        (false, true) => AdminRole::Reader,
        (false, false) => return Err(TokenError::NoRole),
    };
    Ok(Person { subject, role })
}

/// Returns the texts of a claim that is one text or a list.
fn texts(claim: Option<&Value>) -> Vec<&str> {
    match claim {
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(values)) => values.iter().filter_map(Value::as_str).collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => Vec::new(),
    }
}

/// Reads a claim with a time, which must be a number if there is one.
fn read_time(claims: &Map<String, Value>, name: &str) -> Result<Option<f64>, TokenError> {
    let Some(value) = claims.get(name) else { return Ok(None) };
    value.as_f64().filter(|time| time.is_finite()).map(Some).ok_or(TokenError::Malformed)
}

fn is_subject(subject: &str) -> bool {
    !subject.is_empty() && subject.chars().count() <= SUBJECT_CHARS_MAX && !subject.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
    use serde_json::json;

    use super::super::keys::KeySet;
    use super::*;

    const NOW: i64 = 1_700_000_000;

    /// A provider with one key.
    struct Provider {
        pair: EcdsaKeyPair,
        keys: KeySet,
    }

    impl Provider {
        fn new() -> Self {
            let random = SystemRandom::new();
            let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
            let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random).unwrap();
            let point = pair.public_key().as_ref();
            let (x, y) = (URL_SAFE_NO_PAD.encode(&point[1..33]), URL_SAFE_NO_PAD.encode(&point[33..]));
            let keys = json!({"keys": [
                {"kty": "oct", "k": "c2VjcmV0", "kid": "shared"},
                {"kty": "EC", "crv": "P-256", "use": "enc", "x": x, "y": y, "kid": "encryption"},
                {"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "x": x, "y": y, "kid": "a"},
            ]});
            Self { pair, keys: KeySet::parse(keys.to_string().as_bytes()).unwrap() }
        }

        fn sign(&self, header: &Value, claims: &Value) -> String {
            let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
            let signed = format!("{}.{}", encode(header), encode(claims));
            let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
            format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
        }

        fn verify(&self, token: &str) -> Result<Person, TokenError> {
            let token = UnverifiedToken::parse(token)?;
            let key = self.keys.find(token.key_id()).ok_or(TokenError::UnknownKey)?;
            token.verify(key, &settings(), Timestamp::from_second(NOW).unwrap())
        }
    }

    fn settings() -> OidcSettings {
        OidcSettings {
            issuer: "https://id.example".to_owned(),
            audience: "sindri".to_owned(),
            role_claim: "groups".to_owned(),
            admin_values: vec!["ops".to_owned()],
            reader_values: vec!["dev".to_owned()],
        }
    }

    fn header() -> Value {
        json!({"alg": "ES256", "kid": "a", "typ": "JWT"})
    }

    fn claims() -> Value {
        json!({
            "iss": "https://id.example", "aud": "sindri", "sub": "anna", "exp": NOW + 300, "iat": NOW, "groups": ["ops"],
        })
    }

    #[test]
    fn a_valid_token_names_the_person_and_the_role() {
        let provider = Provider::new();
        let token = provider.sign(&header(), &claims());
        assert!(is_token(&token));
        let person = |role| Ok(Person { subject: "anna".to_owned(), role });
        assert_eq!(provider.verify(&token), person(AdminRole::Admin));
        for (change, role) in [
            (json!({"groups": "dev"}), AdminRole::Reader),
            (json!({"groups": ["dev", "ops", 1]}), AdminRole::Admin),
            (json!({"aud": ["other", "sindri"], "azp": "sindri"}), AdminRole::Admin),
            (json!({"aud": ["sindri"]}), AdminRole::Admin),
            (json!({"azp": "sindri"}), AdminRole::Admin),
            (json!({"exp": NOW - 59, "nbf": NOW + 59}), AdminRole::Admin),
            (json!({"exp": NOW as f64 + 0.5}), AdminRole::Admin),
        ] {
            let mut claims = claims();
            claims.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            assert_eq!(provider.verify(&provider.sign(&header(), &claims)), person(role), "{change}");
        }
    }

    #[test]
    fn a_token_with_wrong_claims_is_refused() {
        let provider = Provider::new();
        for (change, error) in [
            (json!({"iss": "https://id.example/"}), TokenError::Issuer),
            (json!({"iss": null}), TokenError::Issuer),
            (json!({"aud": "other"}), TokenError::Audience),
            (json!({"aud": ["sindri2", "other"]}), TokenError::Audience),
            (json!({"aud": {"sindri": 1}}), TokenError::Audience),
            (json!({"aud": ["other", "sindri"]}), TokenError::AuthorizedParty),
            (json!({"aud": ["other", "sindri"], "azp": "other"}), TokenError::AuthorizedParty),
            (json!({"azp": "other"}), TokenError::AuthorizedParty),
            (json!({"azp": ["sindri"]}), TokenError::AuthorizedParty),
            (json!({"exp": NOW - 60}), TokenError::Expired),
            (json!({"exp": "2999999999"}), TokenError::Malformed),
            (json!({"exp": null}), TokenError::Malformed),
            (json!({"nbf": NOW + 61}), TokenError::NotYetValid),
            (json!({"nbf": "0"}), TokenError::Malformed),
            (json!({"iat": NOW + 61}), TokenError::NotYetValid),
            (json!({"sub": ""}), TokenError::Subject),
            (json!({"sub": 7}), TokenError::Subject),
            (json!({"sub": "a\nb"}), TokenError::Subject),
            (json!({"sub": "a".repeat(201)}), TokenError::Subject),
            (json!({"groups": []}), TokenError::NoRole),
            (json!({"groups": {"ops": true}}), TokenError::NoRole),
            (json!({"groups": "ops,dev"}), TokenError::NoRole),
        ] {
            let mut claims = claims();
            claims.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            assert_eq!(provider.verify(&provider.sign(&header(), &claims)), Err(error), "{change}");
        }
        let mut endless = claims();
        endless.as_object_mut().unwrap().remove("exp");
        assert_eq!(provider.verify(&provider.sign(&header(), &endless)), Err(TokenError::Malformed));
    }

    #[test]
    fn a_token_with_another_type_algorithm_key_or_signature_is_refused() {
        let provider = Provider::new();
        for (header, error) in [
            (json!({"alg": "none", "kid": "a"}), TokenError::Algorithm),
            (json!({"alg": "None", "kid": "a"}), TokenError::Algorithm),
            (json!({"alg": "HS256", "kid": "a"}), TokenError::Algorithm),
            (json!({"alg": "HS256", "kid": "shared"}), TokenError::Algorithm),
            (json!({"alg": "RS256", "kid": "a"}), TokenError::Signature),
            (json!({"alg": "ES384", "kid": "a"}), TokenError::Algorithm),
            (json!({"alg": "ES256", "kid": "b"}), TokenError::UnknownKey),
            (json!({"alg": "ES256", "kid": "shared"}), TokenError::UnknownKey),
            (json!({"alg": "ES256", "kid": "encryption"}), TokenError::UnknownKey),
            (json!({"alg": "ES256", "kid": "a", "crit": ["b64"]}), TokenError::Malformed),
            (json!({"alg": ["ES256"], "kid": "a"}), TokenError::Malformed),
            (json!({"alg": "ES256", "kid": "a", "typ": "at+jwt"}), TokenError::AccessToken),
            (json!({"alg": "ES256", "kid": "a", "typ": "application/AT+JWT"}), TokenError::AccessToken),
            (json!({"kid": "a"}), TokenError::Malformed),
        ] {
            assert_eq!(provider.verify(&provider.sign(&header, &claims())), Err(error), "{header}");
        }
        let token = provider.sign(&header(), &claims());
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let other = Provider::new().sign(&header(), &claims());
        let mut raised = claims();
        raised["sub"] = json!("root");
        let claims = URL_SAFE_NO_PAD.encode(raised.to_string());
        let moved = format!("{}.{claims}.{signature}", signed.split_once('.').unwrap().0);
        let empty = format!("{signed}.");
        let zeros = format!("{signed}.{}", URL_SAFE_NO_PAD.encode([0; 64]));
        for forged in [other.as_str(), &moved, &empty, &zeros] {
            assert_eq!(provider.verify(forged), Err(TokenError::Signature), "{forged}");
        }
    }

    #[test]
    fn other_texts_are_malformed() {
        let provider = Provider::new();
        let long = format!("eyJ{}.a.b", "a".repeat(TOKEN_CHARS_MAX));
        for text in ["", ".", "..", "a.b.c", "eyJ.eyJ.eyJ", "eyJh.b", "e30.e30.", long.as_str(), "eyJ.a.b.c"] {
            assert_eq!(provider.verify(text), Err(TokenError::Malformed), "{text}");
        }
        assert!(!is_token("brokkr_BRabc_def") && !is_token("eyJ.a") && !is_token("a.b.c"));
    }
}
