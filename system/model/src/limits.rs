//! Limits of the fields of requests: the broker enforces them, and the OpenAPI document states them.

/// Characters of every name.
pub const NAME_CHARS_MAX: usize = 255;
/// Characters of the description of a stack or a generator.
pub const DESCRIPTION_CHARS_MAX: usize = 4_096;
/// Seconds for which a replaced key may stay valid: 30 days.
pub const GRACE_SECONDS_MAX: u32 = 30 * 24 * 60 * 60;
/// Characters of a label.
pub const LABEL_CHARS_MAX: usize = 64;
/// Characters of the key of an annotation.
pub const ANNOTATION_KEY_CHARS_MAX: usize = 253;
/// Characters of the value of an annotation.
pub const ANNOTATION_VALUE_CHARS_MAX: usize = 4096;
/// Maximum number of agents in each list of a request that changes a suspension.
pub const SUSPENSION_AGENTS_MAX: usize = 4096;
/// Characters of the type of an event.
pub const EVENT_TYPE_CHARS_MAX: usize = 50;
/// Characters of the status of an event.
pub const EVENT_STATUS_CHARS_MAX: usize = 10;
/// Revisions in one health report.
pub const HEALTH_RECORDS_MAX: usize = 1_000;
/// Conditions in one report about a stack.
pub const CONDITIONS_MAX: usize = 16;
/// Characters of the type of a condition.
pub const CONDITION_TYPE_CHARS_MAX: usize = 64;
/// Characters of the reason of a condition.
pub const CONDITION_REASON_CHARS_MAX: usize = 256;
/// Characters of the message of a condition.
pub const CONDITION_MESSAGE_CHARS_MAX: usize = 4_096;
/// Hexadecimal digits of the digest of a plan.
pub const DIGEST_CHARS: usize = 64;
/// Reasons for which a plan is held.
pub const HOLD_REASONS_MAX: usize = 32;
/// Characters of one of these reasons.
pub const HOLD_REASON_CHARS_MAX: usize = 1_024;
/// Bytes of a plan.
pub const PLAN_BYTES_MAX: usize = 64 * 1_024;
/// Characters of the URL of a webhook.
pub const WEBHOOK_URL_CHARS_MAX: usize = 2_048;
/// Characters of a bundle: as many as the largest body that can be allowed.
pub const BUNDLE_CHARS_MAX: usize = 64 * 1_024 * 1_024;
/// Characters of an event type of a webhook; every type and pattern is shorter.
pub const WEBHOOK_EVENT_TYPE_CHARS_MAX: usize = 64;
/// Event types of a webhook.
pub const WEBHOOK_EVENT_TYPES_MAX: usize = 32;
/// Labels of the agents that send the messages of a webhook.
pub const WEBHOOK_LABELS_MAX: usize = 100;
/// Characters of the `Authorization` header of a webhook.
pub const WEBHOOK_AUTH_HEADER_CHARS_MAX: usize = 4_096;
/// Characters of the signing secret of a webhook.
pub const WEBHOOK_SECRET_CHARS_MAX: usize = 128;
/// Retries of a failed delivery.
pub const WEBHOOK_RETRIES_MAX: u32 = 20;
/// Shortest timeout of an attempt to deliver.
pub const WEBHOOK_TIMEOUT_SECONDS_MIN: u64 = 1;
/// Longest timeout of an attempt to deliver.
pub const WEBHOOK_TIMEOUT_SECONDS_MAX: u64 = 60;

/// Pattern of a text without control characters.
pub const NO_CONTROL_PATTERN: &str = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$";
/// Pattern of a text without spaces.
pub const WORD_PATTERN: &str = "^\\S*$";
/// Pattern of letters and digits.
pub const ALPHANUMERIC_PATTERN: &str = "^[0-9A-Za-z]*$";
/// Pattern of a digest.
pub const DIGEST_PATTERN: &str = "^[0-9a-f]*$";
