//! An OpenAPI v2 document in Protobuf: the messages of gnostic, in which older clients ask for it.

use serde_json::{Map, Value};

use crate::encoding::yaml::writer;

/// Wire types of tags.
const VARINT: u8 = 0;
const FIXED64: u8 = 1;
const LENGTH: u8 = 2;
const EXTENSION: &str = "x-";

/// Message that is being written.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn write_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(u8::try_from(value & 0x7f).expect("seven bits") | 0x80);
            value >>= 7;
        }
        self.0.push(u8::try_from(value).expect("seven bits"));
    }

    fn write_tag(&mut self, number: u8, wire_type: u8) {
        self.write_varint(u64::from(number) << 3 | u64::from(wire_type));
    }

    fn write_bytes(&mut self, number: u8, content: &[u8]) {
        self.write_tag(number, LENGTH);
        self.write_varint(u64::try_from(content.len()).expect("a length has at most 64 bits"));
        self.0.extend_from_slice(content);
    }

    fn write_message(&mut self, number: u8, content: Option<Self>) {
        if let Some(Self(bytes)) = content {
            self.write_bytes(number, &bytes);
        }
    }

    /// Writes a string, a list of strings, a boolean or a number; an absent or zero value is omitted.
    fn write_plain(&mut self, number: u8, value: Option<&Value>) {
        match value {
            Some(Value::String(text)) if !text.is_empty() => self.write_bytes(number, text.as_bytes()),
            Some(Value::Array(texts)) => {
                texts.iter().filter_map(Value::as_str).for_each(|text| self.write_bytes(number, text.as_bytes()));
            }
            Some(Value::Bool(true)) => {
                self.write_tag(number, VARINT);
                self.write_varint(1);
            }
            _ => {}
        }
    }

    fn write_integer(&mut self, number: u8, value: Option<&Value>) {
        if let Some(value) = value.and_then(Value::as_u64).filter(|value| *value != 0) {
            self.write_tag(number, VARINT);
            self.write_varint(value);
        }
    }

    fn write_double(&mut self, number: u8, value: Option<&Value>) {
        if let Some(value) = value.and_then(Value::as_f64).filter(|value| *value != 0.0) {
            self.write_tag(number, FIXED64);
            self.0.extend_from_slice(&value.to_le_bytes());
        }
    }

    /// Writes each entry of a map as a message with its name and its value.
    fn write_named(&mut self, number: u8, map: Option<&Value>, encode: impl Fn(&Value) -> Self) {
        for (name, value) in map.and_then(Value::as_object).into_iter().flatten() {
            let entry = Self::named(name, encode(value));
            self.write_bytes(number, &entry.0);
        }
    }

    /// Writes the extensions of an object.
    fn write_extensions(&mut self, number: u8, object: &Value) {
        let fields = object.as_object().into_iter().flatten().filter(|(name, _)| name.starts_with(EXTENSION));
        for (name, value) in fields {
            let entry = Self::named(name, encode_any(value));
            self.write_bytes(number, &entry.0);
        }
    }

    fn named(name: &str, value: Self) -> Self {
        let mut entry = Self::default();
        entry.write_bytes(1, name.as_bytes());
        entry.write_message(2, Some(value));
        entry
    }

    /// Returns a message that has only this field.
    fn holding(number: u8, content: Self) -> Self {
        let mut message = Self::default();
        message.write_message(number, Some(content));
        message
    }
}

/// Encodes a whole document.
pub(super) fn encode_document(document: &Value) -> Vec<u8> {
    let mut message = Message::default();
    message.write_plain(1, document.get("swagger"));
    message.write_message(2, document.get("info").map(encode_info));
    message.write_message(8, document.get("paths").map(encode_paths));
    message.write_message(9, document.get("definitions").map(encode_schemas));
    message.write_message(10, document.get("parameters").map(encode_parameters));
    for requirement in document.get("security").and_then(Value::as_array).into_iter().flatten() {
        message.write_message(12, Some(encode_requirement(requirement)));
    }
    message.write_message(13, document.get("securityDefinitions").map(encode_security));
    message.0
}

fn encode_info(info: &Value) -> Message {
    let mut message = Message::default();
    message.write_plain(1, info.get("title"));
    message.write_plain(2, info.get("version"));
    message
}

fn encode_any(value: &Value) -> Message {
    let mut message = Message::default();
    message.write_bytes(2, writer::write(value).as_bytes());
    message
}

fn encode_requirement(requirement: &Value) -> Message {
    let mut message = Message::default();
    message.write_named(1, Some(requirement), |scopes| {
        let mut list = Message::default();
        list.write_plain(1, Some(scopes));
        list
    });
    message
}

fn encode_security(definitions: &Value) -> Message {
    let mut message = Message::default();
    message.write_named(1, Some(definitions), |definition| {
        let mut key = Message::default();
        for (number, field) in [(1, "type"), (2, "name"), (3, "in"), (4, "description")] {
            key.write_plain(number, definition.get(field));
        }
        Message::holding(2, key)
    });
    message
}

fn encode_paths(paths: &Value) -> Message {
    let mut message = Message::default();
    message.write_named(2, Some(paths), encode_path);
    message
}

fn encode_path(path: &Value) -> Message {
    let mut message = Message::default();
    for (number, method) in
        [(2, "get"), (3, "put"), (4, "post"), (5, "delete"), (6, "options"), (7, "head"), (8, "patch")]
    {
        message.write_message(number, path.get(method).map(encode_operation));
    }
    write_parameter_list(&mut message, 9, path);
    message
}

fn encode_operation(operation: &Value) -> Message {
    let mut message = Message::default();
    for (number, field) in
        [(1, "tags"), (2, "summary"), (3, "description"), (5, "operationId"), (6, "produces"), (7, "consumes")]
    {
        message.write_plain(number, operation.get(field));
    }
    write_parameter_list(&mut message, 8, operation);
    message.write_message(9, operation.get("responses").map(encode_responses));
    message.write_plain(10, operation.get("schemes"));
    message.write_plain(11, operation.get("deprecated"));
    message.write_extensions(13, operation);
    message
}

fn write_parameter_list(message: &mut Message, number: u8, holder: &Value) {
    for parameter in holder.get("parameters").and_then(Value::as_array).into_iter().flatten() {
        let item = match parameter.get("$ref") {
            Some(reference) => {
                let mut target = Message::default();
                target.write_plain(1, Some(reference));
                Message::holding(2, target)
            }
            None => Message::holding(1, encode_parameter(parameter)),
        };
        message.write_message(number, Some(item));
    }
}

fn encode_parameters(parameters: &Value) -> Message {
    let mut message = Message::default();
    message.write_named(1, Some(parameters), encode_parameter);
    message
}

fn encode_parameter(parameter: &Value) -> Message {
    let place = parameter.get("in").and_then(Value::as_str).unwrap_or_default();
    if place == "body" {
        let mut body = Message::default();
        for (number, field) in [(1, "description"), (2, "name"), (3, "in"), (4, "required")] {
            body.write_plain(number, parameter.get(field));
        }
        body.write_message(5, parameter.get("schema").map(encode_schema));
        return Message::holding(1, body);
    }
    // Only parameters of the query and of forms have a field before their type.
    let (choice, shift) = match place {
        "header" => (1, 0),
        "formData" => (2, 1),
        "query" => (3, 1),
        _ => (4, 0),
    };
    let mut plain = Message::default();
    for (number, field) in [(1, "required"), (2, "in"), (3, "description"), (4, "name")] {
        plain.write_plain(number, parameter.get(field));
    }
    plain.write_plain(5 + shift, parameter.get("type"));
    plain.write_plain(6 + shift, parameter.get("format"));
    plain.write_plain(19 + shift, parameter.get("uniqueItems"));
    Message::holding(2, Message::holding(choice, plain))
}

fn encode_responses(responses: &Value) -> Message {
    let mut message = Message::default();
    message.write_named(1, Some(responses), |response| {
        let mut content = Message::default();
        content.write_plain(1, response.get("description"));
        content.write_message(2, response.get("schema").map(|schema| Message::holding(1, encode_schema(schema))));
        Message::holding(1, content)
    });
    message
}

fn encode_schemas(schemas: &Value) -> Message {
    let mut message = Message::default();
    message.write_named(1, Some(schemas), encode_schema);
    message
}

fn encode_schema(schema: &Value) -> Message {
    let mut message = Message::default();
    let field = |name: &str| schema.get(name);
    for (number, name) in [(1, "$ref"), (2, "format"), (3, "title"), (4, "description")] {
        message.write_plain(number, field(name));
    }
    message.write_message(5, field("default").map(encode_any));
    message.write_double(6, field("multipleOf"));
    message.write_double(7, field("maximum"));
    message.write_plain(8, field("exclusiveMaximum"));
    message.write_double(9, field("minimum"));
    message.write_plain(10, field("exclusiveMinimum"));
    message.write_integer(11, field("maxLength"));
    message.write_integer(12, field("minLength"));
    message.write_plain(13, field("pattern"));
    message.write_integer(14, field("maxItems"));
    message.write_integer(15, field("minItems"));
    message.write_plain(16, field("uniqueItems"));
    message.write_integer(17, field("maxProperties"));
    message.write_integer(18, field("minProperties"));
    message.write_plain(19, field("required"));
    for value in field("enum").and_then(Value::as_array).into_iter().flatten() {
        message.write_message(20, Some(encode_any(value)));
    }
    message.write_message(21, field("additionalProperties").map(encode_additional));
    message.write_message(22, field("type").map(encode_type));
    message.write_message(23, field("items").map(|items| Message::holding(1, encode_schema(items))));
    message.write_message(25, field("properties").map(encode_schemas));
    message.write_message(29, field("externalDocs").map(encode_documentation));
    message.write_message(30, field("example").map(encode_any));
    message.write_extensions(31, schema);
    message
}

fn encode_type(types: &Value) -> Message {
    let mut message = Message::default();
    message.write_plain(1, Some(types));
    message
}

fn encode_documentation(documentation: &Value) -> Message {
    let mut message = Message::default();
    message.write_plain(1, documentation.get("description"));
    message.write_plain(2, documentation.get("url"));
    message
}

/// Encodes `additionalProperties`: a schema, or whether there may be any.
fn encode_additional(additional: &Value) -> Message {
    if additional.as_object().is_some_and(|schema: &Map<String, Value>| !schema.is_empty()) {
        return Message::holding(1, encode_schema(additional));
    }
    let mut message = Message::default();
    message.write_plain(2, Some(additional));
    message
}
