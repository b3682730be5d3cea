//! Questions about access: who am I, may I, may they, and tokens for accounts.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::SignedDuration;
use serde_json::{Value, json};
use sindri_merge::{Writer, track_update};

use super::{Issued, User, Wish};
use crate::http::error::ApiError;
use crate::http::response::Response;
use crate::object::fields::{later, list, metadata, stamp, text};
use crate::registry::types::{encode, types};
use crate::server::ApiServer;
use crate::verbs::Call;

const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
/// How long a token is good for when nothing is said.
const TOKEN_SECONDS: i64 = 3_600;

impl ApiServer {
    /// Answers a review, which is an object that is never stored.
    pub(crate) fn answer_review(&mut self, call: &Call<'_>, asked: Value, manager: &str) -> Result<Response, ApiError> {
        let kind = call.target.resource.kind.as_str();
        let mut object = asked;
        object["apiVersion"] = json!(call.target.api_version());
        object["kind"] = json!(kind);
        if !matches!(kind, "SelfSubjectReview" | "SelfSubjectRulesReview") {
            object = self.tracked(call, object, manager, "")?;
        }
        metadata(&mut object);
        match kind {
            "SelfSubjectReview" => {
                metadata(&mut object).insert("creationTimestamp".to_owned(), json!(call.stamp()));
                object["status"] = json!({"userInfo": call.user.to_value()});
            }
            "SelfSubjectAccessReview" => object["status"] = self.verdict(&call.user, &object),
            "SubjectAccessReview" | "LocalSubjectAccessReview" => {
                let groups =
                    list(&object, "/spec/groups").iter().filter_map(Value::as_str).map(str::to_owned).collect();
                let user = User { name: text(&object, "/spec/user").to_owned(), groups, ..User::default() };
                object["status"] = self.verdict(&user, &object);
            }
            "SelfSubjectRulesReview" => {
                object["status"] = self.all_rules(&call.user, text(&object, "/spec/namespace"));
                object["spec"] = json!({});
            }
            "TokenReview" => object["status"] = self.token_verdict(text(&object, "/spec/token")),
            _ => return Err(ApiError::method_not_allowed()),
        }
        Ok(Response::json(201, &object))
    }

    fn tracked(&self, call: &Call<'_>, object: Value, manager: &str, part: &'static str) -> Result<Value, ApiError> {
        let typed = types().of_kind(&call.target.resource.group, &call.target.version.name, text(&object, "/kind"));
        let token = types().of_kind("authentication.k8s.io", "v1", text(&object, "/kind"));
        let Some(typed) = typed.or(token) else { return Ok(object) };
        let Some(shape) = types().shape(&typed.name) else { return Ok(object) };
        let (api_version, now, blank) =
            (text(&object, "/apiVersion").to_owned(), call.stamp(), encode::skeleton(typed));
        let writer = Writer { manager, api_version: &api_version, subresource: part, now: &now, blank: &blank };
        track_update(shape, None, &object, &writer).map_err(|error| ApiError::bad_request(error.to_string()))
    }

    fn verdict(&self, user: &User, review: &Value) -> Value {
        let attribute = |name: &str| text(review, &format!("/spec/resourceAttributes/{name}")).to_owned();
        let path = text(review, "/spec/nonResourceAttributes/path");
        let wish = if path.is_empty() {
            Wish {
                verb: attribute("verb"),
                group: attribute("group"),
                resource: attribute("resource"),
                subresource: attribute("subresource"),
                namespace: attribute("namespace"),
                name: attribute("name"),
                path: None,
            }
        } else {
            let verb = text(review, "/spec/nonResourceAttributes/verb").to_owned();
            Wish { verb, path: Some(path.to_owned()), ..Wish::default() }
        };
        match self.allows(user, &wish) {
            None => json!({"allowed": false}),
            Some(reason) if reason.is_empty() => json!({"allowed": true}),
            Some(reason) => json!({"allowed": true, "reason": reason}),
        }
    }

    fn all_rules(&self, user: &User, namespace: &str) -> Value {
        let (mut resources, mut paths): (Vec<Value>, Vec<Value>) = (Vec::new(), Vec::new());
        for rule in self.rules_of(user, namespace) {
            if rule.get("nonResourceURLs").is_some() { paths.push(rule) } else { resources.push(rule) }
        }
        json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false})
    }

    fn token_verdict(&self, token: &str) -> Value {
        match self.tokens.0.get(token) {
            None => json!({"user": {}, "error": "invalid bearer token"}),
            Some(issued) => {
                let name = format!("system:serviceaccount:{}:{}", issued.namespace, issued.account);
                json!({"authenticated": true, "user": {"username": name, "uid": issued.uid}, "audiences": [ISSUER]})
            }
        }
    }

    /// A token for an account.
    pub(crate) fn issue_token(&mut self, call: &Call<'_>, asked: Value, manager: &str) -> Result<Response, ApiError> {
        let live = self.live(call).cloned().ok_or_else(|| call.not_found())?;
        let (uid, namespace) =
            (crate::object::fields::uid(&live).to_owned(), call.namespace.clone().unwrap_or_default());
        let seconds = asked.pointer("/spec/expirationSeconds").and_then(Value::as_i64).unwrap_or(TOKEN_SECONDS);
        let mut object = json!({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1"});
        object["spec"] = json!({ "expirationSeconds": seconds });
        let mut object = self.tracked(call, object, manager, "token")?;
        let fields = metadata(&mut object);
        fields.insert("name".to_owned(), json!(call.name));
        fields.insert("namespace".to_owned(), json!(namespace));
        fields.insert("uid".to_owned(), json!(uid));
        fields.insert("creationTimestamp".to_owned(), json!(call.stamp()));
        let id = self.ids.uid();
        let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let header = part(json!({"alg": "ES256", "kid": "simulated"}));
        let claims =
            part(json!({"iss": ISSUER, "jti": id, "sub": format!("system:serviceaccount:{namespace}:{}", call.name)}));
        let token = format!("{header}.{claims}.{}", URL_SAFE_NO_PAD.encode(self.ids.uid()));
        let end = later(call.now, SignedDuration::from_secs(seconds.clamp(0, 1 << 32)));
        object["spec"] = json!({"audiences": [ISSUER], "boundObjectRef": null, "expirationSeconds": seconds});
        object["status"] = json!({"token": token, "expirationTimestamp": stamp(end)});
        self.tokens.0.insert(token, Issued { namespace, account: call.name.clone(), uid, id });
        Ok(Response::json(201, &object))
    }
}
