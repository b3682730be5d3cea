//! The fields of a message, one after the other, and what Go says where a message is broken.

/// What Go says of a message that ends too early.
const ENDS_EARLY: &str = "unexpected EOF";
const OVERFLOW: &str = "proto: integer overflow";
const NEGATIVE: &str = "proto: negative length found during unmarshaling";

/// How a value is written, as the lowest bits of a tag say it.
pub(super) const VARINT: u8 = 0;
pub(super) const FIXED: u8 = 1;
pub(super) const LENGTH: u8 = 2;
const GROUP: u8 = 3;
const GROUP_END: u8 = 4;
const SHORT: u8 = 5;

/// What stands behind the number of a field.
#[derive(Clone, Copy)]
pub(super) enum Wire<'a> {
    Number(u64),
    Fixed(u64),
    Bytes(&'a [u8]),
}

/// The number of a field, and how its value is written.
pub(super) struct Tag {
    pub(super) number: u32,
    pub(super) kind: u8,
}

/// The rest of a message.
pub(super) struct Rest<'a>(pub(super) &'a [u8]);

impl<'a> Rest<'a> {
    /// The next tag of a message of this type, or that it has ended.
    pub(super) fn tag(&mut self, of: &str) -> Result<Option<Tag>, String> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let kind = u8::try_from(tag & 7).expect("three bits");
        if kind == GROUP_END {
            return Err(format!("proto: {of}: wiretype end group for non-group"));
        }
        // Go keeps the lower half.
        let low = u32::try_from(tag >> 3 & u64::from(u32::MAX)).expect("cut to its size");
        let number = low.cast_signed();
        if number <= 0 {
            return Err(format!("proto: {of}: illegal tag {number} (wire type {tag})"));
        }
        Ok(Some(Tag { number: low, kind }))
    }

    /// The value of a field that has this name in Go, and is written in one of these ways.
    pub(super) fn value(&mut self, tag: &Tag, go: &str, ways: &[u8]) -> Result<Wire<'a>, String> {
        if !ways.contains(&tag.kind) {
            return Err(format!("proto: wrong wireType = {} for field {go}", tag.kind));
        }
        Ok(match tag.kind {
            VARINT => Wire::Number(self.varint()?),
            FIXED => Wire::Fixed(u64::from_le_bytes(self.take(8)?.try_into().expect("eight bytes"))),
            _ => Wire::Bytes(self.delimited()?),
        })
    }

    /// Goes over a field that nobody knows.
    pub(super) fn skip(&mut self, tag: &Tag) -> Result<(), String> {
        let (mut depth, mut kind) = (0_usize, tag.kind);
        loop {
            match kind {
                VARINT => drop(self.varint()?),
                FIXED => drop(self.take(8)?),
                LENGTH => drop(self.delimited()?),
                SHORT => drop(self.take(4)?),
                GROUP => depth += 1,
                GROUP_END if depth == 0 => return Err("proto: unexpected end of group".to_owned()),
                GROUP_END => depth -= 1,
                other => return Err(format!("proto: illegal wireType {other}")),
            }
            if depth == 0 {
                return Ok(());
            }
            kind = u8::try_from(self.varint()? & 7).expect("three bits");
        }
    }

    pub(super) fn varint(&mut self) -> Result<u64, String> {
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

    pub(super) fn delimited(&mut self) -> Result<&'a [u8], String> {
        let length = self.varint()?.cast_signed();
        let length = usize::try_from(length).map_err(|_| NEGATIVE.to_owned())?;
        self.take(length)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or_else(|| ENDS_EARLY.to_owned())?;
        self.0 = rest;
        Ok(taken)
    }
}

/// The fields of a small message: each known one with its number, name in Go and way of being written.
pub(super) fn fields<'a>(bytes: &'a [u8], of: &str, known: &[(u32, &str, u8)]) -> Result<Vec<(u32, Wire<'a>)>, String> {
    let mut rest = Rest(bytes);
    let mut found = Vec::new();
    while let Some(tag) = rest.tag(of)? {
        match known.iter().find(|(number, _, _)| *number == tag.number) {
            Some((number, go, way)) => found.push((*number, rest.value(&tag, go, &[*way])?)),
            None => rest.skip(&tag)?,
        }
    }
    Ok(found)
}
