//! The next step after a request that failed.

use http::StatusCode;
use sindri_client::{ClientError, ConnectionFailure, is_secure_url};

/// Advice for a code of the broker, which is more exact than that for the status.
const BY_CODE: [(&str, &str); 15] = [
    ("token_expired", "log in again with sindri login"),
    ("key_expired", "an administrator replaces the key with sindri generator, agent or admin rotate-key"),
    ("read_only_key", "use the key of an administrator that may change things; sindri whoami shows whose key it is"),
    ("admin_required", "use the key of an administrator; sindri whoami shows whose key it is"),
    ("generator_inactive", "an administrator activates the generator with sindri generator activate"),
    ("stack_not_owned", "use the key of an administrator or of the stack's generator"),
    ("target_generator_mismatch", "use the key of an administrator or of the stack's generator"),
    ("agent_not_registered", "an administrator registers the agent with sindri generator register"),
    ("unique_violation", "choose another name, or look for the present one with the command list"),
    (
        "approval_decided",
        "submit the revision again with sindri apply: the agent asks again if it still holds the plan",
    ),
    ("last_admin", "create another administrator first, with sindri admin create"),
    ("stack_suspended", "let the stack be written again with sindri stack resume"),
    ("idempotency_key_reused", "run the command again"),
    ("webhooks_not_configured", "set webhooks.encryption_key_file of the broker"),
    (
        "route_not_found",
        "the broker is older than this command, or the URL is not that of a broker; sindri version shows both",
    ),
];

/// Returns the next step.
pub(crate) fn advise(error: &ClientError) -> Option<String> {
    let advice = match error {
        ClientError::Unreachable { failure, broker, .. } => return advise_unreachable(*failure, broker),
        ClientError::Malformed { .. } => "check that the URL is that of a broker, and not of a proxy or another server",
        ClientError::Rejected { status, problem, .. } => {
            let by_code = BY_CODE.iter().find(|(code, _)| *code == problem.code).map(|(_, advice)| *advice);
            by_code.or_else(|| advise_by_status(*status))?
        }
    };
    Some(advice.to_owned())
}

fn advise_by_status(status: StatusCode) -> Option<&'static str> {
    let advice = match status {
        StatusCode::UNAUTHORIZED => {
            "check the key: --key-file, SINDRI_KEY_FILE, SINDRI_KEY or the context, and that it is for this broker"
        }
        StatusCode::FORBIDDEN => "use another key; sindri whoami shows whose key it is",
        StatusCode::NOT_FOUND => "it may have been deleted meanwhile; the command list shows what exists",
        StatusCode::PAYLOAD_TOO_LARGE => {
            "split the stack, or raise limits.body_bytes of the broker (--limits-body-bytes) and the limit of a proxy"
        }
        StatusCode::CONFLICT => "look at its present state, and run the command again if it is still needed",
        StatusCode::UNPROCESSABLE_ENTITY => "check that everything that the request names exists",
        StatusCode::TOO_MANY_REQUESTS => "wait, and run the command again",
        status if status.is_server_error() => "run the command again; the log of the broker has the reason",
        _ => return None,
    };
    Some(advice)
}

fn advise_unreachable(failure: ConnectionFailure, broker: &str) -> Option<String> {
    Some(match failure {
        ConnectionFailure::Refused => {
            "check that the broker runs, and the port in --broker, SINDRI_BROKER or the context".to_owned()
        }
        ConnectionFailure::UnknownHost => {
            "check the name of the host in --broker, SINDRI_BROKER or the context".to_owned()
        }
        ConnectionFailure::Certificate => {
            "set --broker-ca-file to the authority that issued the certificate, or use the name that it is for"
                .to_owned()
        }
        ConnectionFailure::NotTls => {
            let plain = broker.replacen("https://", "http://", 1);
            // Another host may only claim that it has no TLS, to get the key.
            if !is_secure_url(&plain) {
                return Some(
                    "check the port, and the proxies between: without TLS others could read the key".to_owned(),
                );
            }
            format!("use {plain}")
        }
        ConnectionFailure::NotHttp if broker.starts_with("http://") => {
            format!("use {} if the broker has TLS", broker.replacen("http://", "https://", 1))
        }
        ConnectionFailure::NotHttp | ConnectionFailure::Other => return None,
    })
}

#[cfg(test)]
mod tests {
    use sindri_model::Problem;

    use super::*;

    fn rejected(status: u16, code: &str) -> Option<String> {
        let problem = Problem { code: code.to_owned(), message: String::new(), details: None };
        let status = StatusCode::from_u16(status).unwrap();
        advise(&ClientError::Rejected { operation: String::new(), status, problem })
    }

    fn unreachable(failure: ConnectionFailure, broker: &str) -> Option<String> {
        let (operation, reason) = (String::new(), String::new());
        advise(&ClientError::Unreachable { operation, broker: broker.to_owned(), reason, failure })
    }

    #[test]
    fn a_rejection_says_what_to_do_next() {
        let cases = [
            (401, "unauthorized", "SINDRI_KEY_FILE"),
            (401, "key_expired", "rotate-key"),
            (403, "admin_required", "key of an administrator"),
            (403, "agent_not_registered", "sindri generator register"),
            (403, "forbidden", "sindri whoami"),
            (404, "stack_not_found", "may have been deleted"),
            (404, "route_not_found", "older than this command"),
            (409, "approval_decided", "sindri apply"),
            (409, "unique_violation", "another name"),
            (409, "key_changed", "present state"),
            (413, "body_too_large", "limits.body_bytes"),
            (413, "unexplained", "limit of a proxy"),
            (422, "foreign_key_violation", "exists"),
            (429, "too_many_failures", "wait"),
            (503, "webhooks_not_configured", "webhooks.encryption_key_file"),
            (502, "unexplained", "log of the broker"),
        ];
        for (status, code, part) in cases {
            let advice = rejected(status, code).unwrap();
            assert!(advice.contains(part) && !advice.contains('\n'), "{status} {code}: {advice}");
        }
        // Its message says already what is wrong with the request.
        assert_eq!(rejected(400, "invalid_label"), None);
    }

    #[test]
    fn each_failure_of_a_connection_has_its_own_line() {
        let cases = [
            (ConnectionFailure::Refused, "http://a:1", "that the broker runs"),
            (ConnectionFailure::UnknownHost, "http://a:1", "name of the host"),
            (ConnectionFailure::Certificate, "https://a:1", "--broker-ca-file"),
            (ConnectionFailure::NotTls, "https://127.0.0.1:1", "use http://127.0.0.1:1"),
            (ConnectionFailure::NotTls, "https://a:1", "check the port"),
            (ConnectionFailure::NotHttp, "http://a:1", "use https://a:1 if"),
        ];
        for (failure, broker, part) in cases {
            let advice = unreachable(failure, broker).unwrap();
            assert!(advice.contains(part), "{failure:?}: {advice}");
        }
        assert_eq!(unreachable(ConnectionFailure::Other, "http://a:1"), None);
    }
}
