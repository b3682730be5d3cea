//! Table of the functions and their overloads, for the static check.
//!
//! A line has a name, the types of the arguments, and the type of the result. A dot before the name marks a member
//! function. Capital letters are type variables.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::types::{OPAQUE, Substitution, Type};

/// Types with an order.
const ORDERED: [&str; 8] = ["bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration"];
/// Numeric types, which are comparable with each other.
const NUMBERS: [&str; 3] = ["int", "uint", "double"];

const TABLE: &str = "
!_ bool -> bool
-_ int -> int
-_ double -> double
_==_ A A -> bool
_!=_ A A -> bool
_?_:_ bool A A -> A
_+_ bytes bytes -> bytes
_+_ double double -> double
_+_ duration duration -> duration
_+_ duration timestamp -> timestamp
_+_ timestamp duration -> timestamp
_+_ int int -> int
_+_ list(A) list(A) -> list(A)
_+_ string string -> string
_+_ uint uint -> uint
_-_ double double -> double
_-_ duration duration -> duration
_-_ int int -> int
_-_ timestamp duration -> timestamp
_-_ timestamp timestamp -> duration
_-_ uint uint -> uint
_*_ double double -> double
_*_ int int -> int
_*_ uint uint -> uint
_/_ double double -> double
_/_ int int -> int
_/_ uint uint -> uint
_%_ int int -> int
_%_ uint uint -> uint
@in A list(A) -> bool
@in A map(A,B) -> bool
_[_] list(A) int -> A
_[_] map(A,B) A -> B
_[_] optional_type(list(A)) int -> optional_type(A)
_[_] optional_type(map(A,B)) A -> optional_type(B)
_[?_] list(A) int -> optional_type(A)
_[?_] optional_type(list(A)) int -> optional_type(A)
_[?_] map(A,B) A -> optional_type(B)
_[?_] optional_type(map(A,B)) A -> optional_type(B)
size bytes -> int
.size bytes -> int
size list(A) -> int
.size list(A) -> int
size map(A,B) -> int
.size map(A,B) -> int
size string -> int
.size string -> int
type A -> type
dyn A -> dyn
bool bool -> bool
bool string -> bool
bytes bytes -> bytes
bytes string -> bytes
double double -> double
double int -> double
double string -> double
double uint -> double
duration duration -> duration
duration int -> duration
duration string -> duration
int int -> int
int double -> int
int duration -> int
int string -> int
int timestamp -> int
int uint -> int
string string -> string
string bool -> string
string bytes -> string
string double -> string
string duration -> string
string int -> string
string timestamp -> string
string uint -> string
string net.IP -> string
string net.CIDR -> string
timestamp timestamp -> timestamp
timestamp int -> timestamp
timestamp string -> timestamp
uint uint -> uint
uint double -> uint
uint int -> uint
uint string -> uint
.contains string string -> bool
.endsWith string string -> bool
.startsWith string string -> bool
matches string string -> bool
.matches string string -> bool
.charAt string int -> string
.indexOf string string -> int
.indexOf string string int -> int
.lastIndexOf string string -> int
.lastIndexOf string string int -> int
.lowerAscii string -> string
.upperAscii string -> string
.replace string string string -> string
.replace string string string int -> string
.split string string -> list(string)
.split string string int -> list(string)
.substring string int -> string
.substring string int int -> string
.trim string -> string
.format string list(dyn) -> string
strings.quote string -> string
.join list(string) -> string
.join list(string) string -> string
.find string string -> string
.findAll string string -> list(string)
.findAll string string int -> list(string)
.indexOf list(A) A -> int
.lastIndexOf list(A) A -> int
.slice list(A) int int -> list(A)
.flatten list(list(A)) -> list(A)
.flatten list(dyn) int -> list(dyn)
.reverse list(A) -> list(A)
.distinct list(A) -> list(A)
.first list(A) -> optional_type(A)
.last list(A) -> optional_type(A)
lists.range int -> list(int)
sets.contains list(A) list(A) -> bool
sets.equivalent list(A) list(A) -> bool
sets.intersects list(A) list(A) -> bool
.sum list(int) -> int
.sum list(uint) -> uint
.sum list(double) -> double
.sum list(duration) -> duration
.getFullYear timestamp -> int
.getFullYear timestamp string -> int
.getMonth timestamp -> int
.getMonth timestamp string -> int
.getDayOfYear timestamp -> int
.getDayOfYear timestamp string -> int
.getDayOfMonth timestamp -> int
.getDayOfMonth timestamp string -> int
.getDate timestamp -> int
.getDate timestamp string -> int
.getDayOfWeek timestamp -> int
.getDayOfWeek timestamp string -> int
.getHours timestamp -> int
.getHours timestamp string -> int
.getHours duration -> int
.getMinutes timestamp -> int
.getMinutes timestamp string -> int
.getMinutes duration -> int
.getSeconds timestamp -> int
.getSeconds timestamp string -> int
.getSeconds duration -> int
.getMilliseconds timestamp -> int
.getMilliseconds timestamp string -> int
.getMilliseconds duration -> int
optional.of A -> optional_type(A)
optional.ofNonZeroValue A -> optional_type(A)
optional.none -> optional_type(A)
optional.unwrap list(optional_type(A)) -> list(A)
.unwrapOpt list(optional_type(A)) -> list(A)
.value optional_type(A) -> A
.hasValue optional_type(A) -> bool
.or optional_type(A) optional_type(A) -> optional_type(A)
.orValue optional_type(A) A -> A
quantity string -> kubernetes.Quantity
isQuantity string -> bool
sign kubernetes.Quantity -> int
.isGreaterThan kubernetes.Quantity kubernetes.Quantity -> bool
.isLessThan kubernetes.Quantity kubernetes.Quantity -> bool
.compareTo kubernetes.Quantity kubernetes.Quantity -> int
.asApproximateFloat kubernetes.Quantity -> double
.asInteger kubernetes.Quantity -> int
.isInteger kubernetes.Quantity -> bool
.add kubernetes.Quantity kubernetes.Quantity -> kubernetes.Quantity
.add kubernetes.Quantity int -> kubernetes.Quantity
.sub kubernetes.Quantity kubernetes.Quantity -> kubernetes.Quantity
.sub kubernetes.Quantity int -> kubernetes.Quantity
ip string -> net.IP
isIP string -> bool
ip.isCanonical string -> bool
.family net.IP -> int
.isUnspecified net.IP -> bool
.isLoopback net.IP -> bool
.isLinkLocalMulticast net.IP -> bool
.isLinkLocalUnicast net.IP -> bool
.isGlobalUnicast net.IP -> bool
cidr string -> net.CIDR
isCIDR string -> bool
.containsIP net.CIDR string -> bool
.containsIP net.CIDR net.IP -> bool
.containsCIDR net.CIDR string -> bool
.containsCIDR net.CIDR net.CIDR -> bool
.ip net.CIDR -> net.IP
.prefixLength net.CIDR -> int
.masked net.CIDR -> net.CIDR
url string -> kubernetes.URL
isURL string -> bool
.getScheme kubernetes.URL -> string
.getHost kubernetes.URL -> string
.getHostname kubernetes.URL -> string
.getPort kubernetes.URL -> string
.getEscapedPath kubernetes.URL -> string
.getQuery kubernetes.URL -> map(string,list(string))
";

/// One overload of a function.
pub(crate) struct Overload {
    pub is_member: bool,
    arguments: Vec<Type>,
    result: Type,
    /// Number of type variables, which are numbered from zero.
    variables: usize,
}

impl Overload {
    /// Returns the types of the arguments and of the result with fresh type variables.
    pub fn instance(&self, known: &mut Substitution) -> (Vec<Type>, Type) {
        let fresh: Vec<Type> = (0..self.variables).map(|_| known.create_variable()).collect();
        let arguments = self.arguments.iter().map(|argument| with(argument, &fresh)).collect();
        (arguments, with(&self.result, &fresh))
    }
}

fn with(of: &Type, fresh: &[Type]) -> Type {
    match of {
        Type::Variable(number) => fresh.get(*number).cloned().unwrap_or(Type::Dyn),
        Type::List(of) => Type::list(with(of, fresh)),
        Type::Optional(of) => Type::optional(with(of, fresh)),
        Type::Map(key, value) => Type::Map(Box::new(with(key, fresh)), Box::new(with(value, fresh))),
        other => other.clone(),
    }
}

static OVERLOADS: LazyLock<BTreeMap<String, Vec<Overload>>> = LazyLock::new(|| {
    let mut overloads: BTreeMap<String, Vec<Overload>> = BTreeMap::new();
    let lines = TABLE.lines().map(ToOwned::to_owned).chain(ordered());
    for (name, overload) in lines.filter_map(|line| read(&line)) {
        overloads.entry(name).or_default().push(overload);
    }
    overloads
});

/// Returns the overloads of a function in the order of declaration; `None` for an unknown name.
pub(crate) fn overloads(name: &str) -> Option<&'static [Overload]> {
    OVERLOADS.get(name).map(Vec::as_slice)
}

/// Returns the overloads that exist for each ordered type.
fn ordered() -> impl Iterator<Item = String> {
    let compared = ["_<_", "_<=_", "_>_", "_>=_"].into_iter().flat_map(|name| {
        let others = NUMBERS.into_iter().flat_map(|one| NUMBERS.into_iter().map(move |two| (one, two)));
        let crossed = others.filter(|(one, two)| one != two);
        let all = ORDERED.into_iter().map(|one| (one, one)).chain(crossed);
        all.map(move |(one, two)| format!("{name} {one} {two} -> bool"))
    });
    let lists = ORDERED.into_iter().flat_map(|of| {
        [
            format!(".isSorted list({of}) -> bool"),
            format!(".min list({of}) -> {of}"),
            format!(".max list({of}) -> {of}"),
            format!(".sort list({of}) -> list({of})"),
        ]
    });
    compared.chain(lists)
}

fn read(line: &str) -> Option<(String, Overload)> {
    let (call, result) = line.split_once(" -> ")?;
    let mut words = call.split(' ');
    let name = words.next()?;
    let arguments: Vec<Type> = words.map(read_type).collect();
    let is_member = name.starts_with('.');
    let result = read_type(result);
    let variables = arguments.iter().chain([&result]).map(variables).max().unwrap_or(0);
    let overload = Overload { is_member, arguments, result, variables };
    Some((name.trim_start_matches('.').to_owned(), overload))
}

/// Returns the number of type variables of a type.
fn variables(of: &Type) -> usize {
    match of {
        Type::Variable(number) => number + 1,
        Type::List(of) | Type::Optional(of) => variables(of),
        Type::Map(key, value) => variables(key).max(variables(value)),
        _ => 0,
    }
}

fn read_type(text: &str) -> Type {
    let inside = |prefix: &str| text.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(')'));
    if let Some(of) = inside("list(") {
        return Type::list(read_type(of));
    }
    if let Some(of) = inside("optional_type(") {
        return Type::optional(read_type(of));
    }
    if let Some((key, value)) = inside("map(").and_then(|both| both.split_once(',')) {
        return Type::Map(Box::new(read_type(key)), Box::new(read_type(value)));
    }
    match text {
        "A" => Type::Variable(0),
        "B" => Type::Variable(1),
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::Text,
        "bytes" => Type::Bytes,
        "timestamp" => Type::Timestamp,
        "duration" => Type::Duration,
        "type" => Type::Type,
        name => OPAQUE.iter().find(|known| **known == name).map_or(Type::Dyn, |known| Type::Opaque(known)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_and_the_implementations_have_the_same_functions() {
        let special = ["_?_:_"];
        for name in OVERLOADS.keys().filter(|name| !special.contains(&name.as_str())) {
            assert!(crate::functions::find(name).is_some(), "{name} has no implementation");
        }
        for name in crate::functions::names() {
            assert!(overloads(name).is_some(), "{name} has no types");
        }
    }

    #[test]
    fn every_line_of_the_table_is_valid() {
        let lines = TABLE.lines().filter(|line| !line.is_empty()).count() + ordered().count();
        assert_eq!(OVERLOADS.values().map(Vec::len).sum::<usize>(), lines);
    }
}
