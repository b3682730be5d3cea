//! Protection from YAML alias bombs: counts the memory that a document takes with all aliases expanded, without
//! allocating it.
//!
//! The YAML library limits the number of expansions, but not their size.

use std::fmt;

use serde::de::{DeserializeSeed, Visitor};
use serde::de::{Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess};

/// Memory of a value without its text.
const VALUE_BYTES: usize = 32;

/// Memory that one document may still take. Deserializing with it as a seed reduces it.
pub(crate) struct AliasBudget {
    remaining_bytes: usize,
    /// True if the document needs more than the budget.
    pub is_exceeded: bool,
}

impl AliasBudget {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { remaining_bytes: bytes, is_exceeded: false }
    }

    fn spend<E: Error>(&mut self, text_bytes: usize) -> Result<(), E> {
        match self.remaining_bytes.checked_sub(VALUE_BYTES + text_bytes) {
            Some(remaining_bytes) => {
                self.remaining_bytes = remaining_bytes;
                Ok(())
            }
            None => {
                self.is_exceeded = true;
                Err(E::custom("budget exceeded"))
            }
        }
    }
}

impl<'de> DeserializeSeed<'de> for &mut AliasBudget {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut AliasBudget {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.spend(0)
    }

    fn visit_bool<E: Error>(self, _value: bool) -> Result<(), E> {
        self.spend(0)
    }

    fn visit_i64<E: Error>(self, _value: i64) -> Result<(), E> {
        self.spend(0)
    }

    fn visit_u64<E: Error>(self, _value: u64) -> Result<(), E> {
        self.spend(0)
    }

    fn visit_i128<E: Error>(self, _value: i128) -> Result<(), E> {
        self.spend(0)
    }

    fn visit_u128<E: Error>(self, _value: u128) -> Result<(), E> {
        self.spend(0)
    }

    fn visit_f64<E: Error>(self, _value: f64) -> Result<(), E> {
        self.spend(0)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.spend(text.len())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        self.spend(0)?;
        while values.next_element_seed(&mut *self)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        self.spend(0)?;
        while entries.next_key_seed(&mut *self)?.is_some() {
            entries.next_value_seed(&mut *self)?;
        }
        Ok(())
    }

    /// Visits a tagged value.
    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<(), A::Error> {
        let ((), value) = data.variant_seed(&mut *self)?;
        value.newtype_variant_seed(self)
    }
}
