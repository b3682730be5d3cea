//! Static types, and their unification.

use std::fmt;
use std::sync::Arc;

use crate::shape::{ObjectShape, Shape};

/// Static type of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// Known only at evaluation.
    Dyn,
    /// Type of an expression with a reported error.
    Error,
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A signed integer.
    Int,
    /// An unsigned integer.
    Uint,
    /// A floating-point number.
    Double,
    /// A string.
    Text,
    /// Bytes.
    Bytes,
    /// A point in time.
    Timestamp,
    /// A duration.
    Duration,
    /// A type itself.
    Type,
    /// A list of one type.
    List(Box<Type>),
    /// A map from one type to another.
    Map(Box<Type>, Box<Type>),
    /// An object with known fields.
    Object(Arc<ObjectShape>),
    /// An optional value.
    Optional(Box<Type>),
    /// A type of a library, such as a quantity.
    Opaque(&'static str),
    /// A type variable, by its number.
    Variable(usize),
}

/// Types that a rule can name.
const NAMES: [(&str, Type); 9] = [
    ("bool", Type::Bool),
    ("int", Type::Int),
    ("uint", Type::Uint),
    ("double", Type::Double),
    ("string", Type::Text),
    ("bytes", Type::Bytes),
    ("type", Type::Type),
    ("google.protobuf.Timestamp", Type::Timestamp),
    ("google.protobuf.Duration", Type::Duration),
];

/// Types of Kubernetes' libraries.
pub(crate) const OPAQUE: [&str; 5] =
    ["kubernetes.Quantity", "net.IP", "net.CIDR", "kubernetes.URL", "kubernetes.NamedFormat"];

impl Type {
    /// Returns the type of values with this shape; `None` if rules may not read them.
    pub fn from_shape(shape: &Shape) -> Option<Self> {
        Some(match shape {
            Shape::Hidden => return None,
            Shape::Any | Shape::IntOrText => Self::Dyn,
            Shape::Bool => Self::Bool,
            Shape::Int => Self::Int,
            Shape::Double => Self::Double,
            Shape::Text => Self::Text,
            Shape::Bytes => Self::Bytes,
            Shape::Timestamp | Shape::Date => Self::Timestamp,
            Shape::Duration => Self::Duration,
            Shape::List(items, _) => Self::list(Self::from_shape(items)?),
            Shape::Map(values) => Self::Map(Box::new(Self::Text), Box::new(Self::from_shape(values)?)),
            Shape::Object(shape) => Self::Object(Arc::clone(shape)),
        })
    }

    /// Returns the type with this name, if a rule can name it.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        if let Some((_, named_type)) = NAMES.iter().find(|(type_name, _)| *type_name == name) {
            return Some(named_type.clone());
        }
        match name {
            "null_type" => Some(Self::Null),
            "list" => Some(Self::List(Box::new(Self::Dyn))),
            "map" => Some(Self::Map(Box::new(Self::Dyn), Box::new(Self::Dyn))),
            "optional_type" => Some(Self::Optional(Box::new(Self::Dyn))),
            _ => OPAQUE.iter().find(|type_name| **type_name == name).map(|type_name| Self::Opaque(type_name)),
        }
    }

    pub(crate) fn list(of: Self) -> Self {
        Self::List(Box::new(of))
    }

    pub(crate) fn optional(of: Self) -> Self {
        Self::Optional(Box::new(of))
    }

    fn is_dynamic(&self) -> bool {
        matches!(self, Self::Dyn | Self::Error)
    }

    fn may_be_null(&self) -> bool {
        matches!(
            self,
            Self::Null | Self::Object(_) | Self::Optional(_) | Self::Opaque(_) | Self::Timestamp | Self::Duration
        )
    }

    fn parameters(&self) -> Vec<&Self> {
        match self {
            Self::List(of) | Self::Optional(of) => vec![of],
            Self::Map(key, value) => vec![key, value],
            _ => Vec::new(),
        }
    }

    /// Returns true if this type is at least as general as the other.
    fn is_as_general(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Dyn | Self::Variable(_), _) => true,
            (_, Self::Dyn | Self::Variable(_)) => false,
            (Self::List(one), Self::List(two)) | (Self::Optional(one), Self::Optional(two)) => one.is_as_general(two),
            (Self::Map(one, first), Self::Map(two, second)) => one.is_as_general(two) && first.is_as_general(second),
            (one, two) => one == two,
        }
    }

    fn most_general(one: &Self, two: &Self) -> Self {
        if one.is_as_general(two) { one.clone() } else { two.clone() }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn => formatter.write_str("dyn"),
            Self::Error => formatter.write_str("!error!"),
            Self::Null => formatter.write_str("null"),
            Self::Bool => formatter.write_str("bool"),
            Self::Int => formatter.write_str("int"),
            Self::Uint => formatter.write_str("uint"),
            Self::Double => formatter.write_str("double"),
            Self::Text => formatter.write_str("string"),
            Self::Bytes => formatter.write_str("bytes"),
            Self::Timestamp => formatter.write_str("timestamp"),
            Self::Duration => formatter.write_str("duration"),
            Self::Type => formatter.write_str("type"),
            Self::List(of) => write!(formatter, "list({of})"),
            Self::Map(key, value) => write!(formatter, "map({key}, {value})"),
            Self::Object(shape) => formatter.write_str(&shape.name),
            Self::Optional(of) => write!(formatter, "optional_type({of})"),
            Self::Opaque(name) => formatter.write_str(name),
            Self::Variable(number) => write!(formatter, "_var{number}"),
        }
    }
}

/// Bindings of type variables.
#[derive(Clone, Default)]
pub(crate) struct Substitution(Vec<Option<Type>>);

impl Substitution {
    /// Creates an unbound variable.
    pub fn create_variable(&mut self) -> Type {
        self.0.push(None);
        Type::Variable(self.0.len() - 1)
    }

    fn binding(&self, number: usize) -> Option<&Type> {
        self.0.get(number).and_then(Option::as_ref)
    }

    /// Returns the type with bound variables substituted; unbound ones stay, or become `dyn`.
    pub fn resolve(&self, of: &Type, to_dyn: bool) -> Type {
        match of {
            Type::Variable(number) => match self.binding(*number) {
                Some(bound) => self.resolve(bound, to_dyn),
                None if to_dyn => Type::Dyn,
                None => of.clone(),
            },
            Type::List(of) => Type::list(self.resolve(of, to_dyn)),
            Type::Optional(of) => Type::optional(self.resolve(of, to_dyn)),
            Type::Map(key, value) => {
                Type::Map(Box::new(self.resolve(key, to_dyn)), Box::new(self.resolve(value, to_dyn)))
            }
            other => other.clone(),
        }
    }

    /// Returns true if two types unify; the bindings are kept only then.
    pub fn unifies(&mut self, one: &Type, two: &Type) -> bool {
        self.all_unify(std::slice::from_ref(one), std::slice::from_ref(two))
    }

    pub fn all_unify(&mut self, ones: &[Type], twos: &[Type]) -> bool {
        if ones.len() != twos.len() {
            return false;
        }
        let mut copy = self.clone();
        let fit = ones.iter().zip(twos).all(|(one, two)| copy.unify(one, two));
        if fit {
            *self = copy;
        }
        fit
    }

    fn unify(&mut self, one: &Type, two: &Type) -> bool {
        if let Type::Variable(number) = two {
            match self.bind(one, *number) {
                (true, _) => return true,
                (false, true) => return false,
                (false, false) => {}
            }
        }
        if let Type::Variable(number) = one {
            return self.bind(two, *number).0;
        }
        if one.is_dynamic() || two.is_dynamic() {
            return true;
        }
        if *one == Type::Null || *two == Type::Null {
            return one.may_be_null() && two.may_be_null();
        }
        let (first, second) = (one.parameters(), two.parameters());
        if first.is_empty() && second.is_empty() {
            return one == two;
        }
        std::mem::discriminant(one) == std::mem::discriminant(two)
            && first.into_iter().zip(second).all(|(one, two)| self.unify(one, two))
    }

    /// Binds a variable to a type. Returns if it succeeded, and if the variable was bound before.
    fn bind(&mut self, one: &Type, number: usize) -> (bool, bool) {
        if *one == Type::Variable(number) {
            return (true, true);
        }
        if let Some(bound) = self.binding(number).cloned() {
            if *one == bound {
                return (true, true);
            }
            if !self.unify(one, &bound) {
                return (false, true);
            }
            let general = Type::most_general(one, &bound);
            if !self.occurs(number, &general) {
                self.0[number] = Some(general);
            }
            return (true, true);
        }
        if self.occurs(number, one) || number >= self.0.len() {
            return (false, false);
        }
        self.0[number] = Some(one.clone());
        (true, false)
    }

    fn occurs(&self, number: usize, within: &Type) -> bool {
        match within {
            Type::Variable(other) if *other == number => true,
            Type::Variable(other) => self.binding(*other).is_some_and(|bound| self.occurs(number, bound)),
            other => other.parameters().into_iter().any(|parameter| self.occurs(number, parameter)),
        }
    }

    /// Returns the common type of two elements; `None` if they do not unify.
    pub fn join(&mut self, one: &Type, two: &Type) -> Option<Type> {
        self.unifies(one, two).then(|| Type::most_general(one, two))
    }
}
