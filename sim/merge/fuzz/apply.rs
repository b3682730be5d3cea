//! Feeds arbitrary schemas, live objects and declarations to the library: no input may cause a panic, and every result must
//! be readable and accept another apply.
#![no_main]

mod document;

use document::Bytes;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use sindri_merge::{
    FieldSet, Shape, Writer, apply, compare, extract, merge, merge_patch, strategic_patch, track_update,
};

fuzz_target!(|input: &[u8]| {
    let mut bytes = Bytes(input);
    let force = bytes.next() % 2 == 0;
    let (schema, live, applied) = (bytes.document(), bytes.document(), bytes.document());
    let shape = Shape::from_schema(&schema);
    let writer = Writer { manager: "m", api_version: "v1", subresource: "", now: "t", blank: &Value::Null };

    let _ = (compare(&shape, &live, &applied), merge(&shape, &live, &applied), merge_patch(&live, &applied));
    let _ = strategic_patch(&shape, &live, &applied);
    if let Ok(fields) = FieldSet::from_fields_v1(&live) {
        assert_eq!(FieldSet::from_fields_v1(&fields.to_fields_v1()), Ok(fields));
    }
    if let Ok(applied_object) = apply(&shape, Some(&live), applied.clone(), &writer, force) {
        extract(&shape, &applied_object, "m", "").expect("the result can be read");
        apply(&shape, Some(&applied_object), applied.clone(), &writer, true).expect("the result accepts another apply");
    }
    if let Ok(tracked) = track_update(&shape, Some(&live), &applied, &writer) {
        extract(&shape, &tracked, "m", "").expect("the tracked object can be read");
    }
});
