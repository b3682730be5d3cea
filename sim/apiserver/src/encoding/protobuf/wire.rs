//! The protobuf wire format: reads the fields of a message in sequence. Errors have the messages of Go's decoder.

/// Go's error for a message that ends too early.
const UNEXPECTED_EOF: &str = "unexpected EOF";
const OVERFLOW: &str = "proto: integer overflow";
const NEGATIVE: &str = "proto: negative length found during unmarshaling";

/// Wire types: the encoding of a value, in the lowest three bits of a tag.
pub(super) const VARINT: u8 = 0;
pub(super) const FIXED64: u8 = 1;
pub(super) const LENGTH: u8 = 2;
const GROUP: u8 = 3;
const GROUP_END: u8 = 4;
const FIXED32: u8 = 5;

/// Encoded value of a field.
#[derive(Clone, Copy)]
pub(super) enum WireValue<'a> {
    Number(u64),
    Fixed(u64),
    Bytes(&'a [u8]),
}

/// Number of a field, and its wire type.
pub(super) struct Tag {
    pub(super) number: u32,
    pub(super) wire_type: u8,
}

/// Reads a message; holds the bytes that are left.
pub(super) struct MessageReader<'a>(pub(super) &'a [u8]);

impl<'a> MessageReader<'a> {
    /// Reads the next tag of a message of this type; `None` at the end.
    pub(super) fn read_tag(&mut self, message: &str) -> Result<Option<Tag>, String> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.read_varint()?;
        let wire_type = u8::try_from(tag & 7).expect("three bits");
        if wire_type == GROUP_END {
            return Err(format!("proto: {message}: wiretype end group for non-group"));
        }
        // Go keeps the lower 32 bits.
        let low = u32::try_from(tag >> 3 & u64::from(u32::MAX)).expect("cut to its size");
        let number = low.cast_signed();
        if number <= 0 {
            return Err(format!("proto: {message}: illegal tag {number} (wire type {tag})"));
        }
        Ok(Some(Tag { number: low, wire_type }))
    }

    /// Reads the value of a field with this name in Go, which must have one of these wire types.
    pub(super) fn read_value(&mut self, tag: &Tag, go_name: &str, allowed: &[u8]) -> Result<WireValue<'a>, String> {
        if !allowed.contains(&tag.wire_type) {
            return Err(format!("proto: wrong wireType = {} for field {go_name}", tag.wire_type));
        }
        Ok(match tag.wire_type {
            VARINT => WireValue::Number(self.read_varint()?),
            FIXED64 => WireValue::Fixed(u64::from_le_bytes(self.take(8)?.try_into().expect("eight bytes"))),
            _ => WireValue::Bytes(self.read_delimited()?),
        })
    }

    /// Skips an unknown field.
    pub(super) fn skip_value(&mut self, tag: &Tag) -> Result<(), String> {
        let (mut depth, mut wire_type) = (0_usize, tag.wire_type);
        loop {
            match wire_type {
                VARINT => drop(self.read_varint()?),
                FIXED64 => drop(self.take(8)?),
                LENGTH => drop(self.read_delimited()?),
                FIXED32 => drop(self.take(4)?),
                GROUP => depth += 1,
                GROUP_END if depth == 0 => return Err("proto: unexpected end of group".to_owned()),
                GROUP_END => depth -= 1,
                other => return Err(format!("proto: illegal wireType {other}")),
            }
            if depth == 0 {
                return Ok(());
            }
            wire_type = u8::try_from(self.read_varint()? & 7).expect("three bits");
        }
    }

    pub(super) fn read_varint(&mut self) -> Result<u64, String> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(OVERFLOW.to_owned())
    }

    pub(super) fn read_delimited(&mut self) -> Result<&'a [u8], String> {
        let length = self.read_varint()?.cast_signed();
        let length = usize::try_from(length).map_err(|_| NEGATIVE.to_owned())?;
        self.take(length)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or_else(|| UNEXPECTED_EOF.to_owned())?;
        self.0 = rest;
        Ok(taken)
    }
}

/// Reads the fields of a small message. `known` lists number, Go name and wire type of each known field; others are skipped.
pub(super) fn read_fields<'a>(
    bytes: &'a [u8],
    message: &str,
    known: &[(u32, &str, u8)],
) -> Result<Vec<(u32, WireValue<'a>)>, String> {
    let mut reader = MessageReader(bytes);
    let mut fields = Vec::new();
    while let Some(tag) = reader.read_tag(message)? {
        match known.iter().find(|(number, _, _)| *number == tag.number) {
            Some((number, go_name, wire_type)) => {
                fields.push((*number, reader.read_value(&tag, go_name, &[*wire_type])?))
            }
            None => reader.skip_value(&tag)?,
        }
    }
    Ok(fields)
}
