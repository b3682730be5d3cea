//! Tables of rules with their values.

use crate::evaluate;

#[test]
fn rules_have_values() {
    for (rule, expected) in [
        ("1 + 2 * 3 - 4 / 2", "5"),
        ("-7 / 2 == -3 && -7 % 4 == -3", "true"),
        ("2u + 3u", "5u"),
        ("0.5 * 2.0", "1.0"),
        ("'a' + 'b'", "ab"),
        ("size(self.text)", "5"),
        ("self.size < 3.5 && self.size > 2u && self.huge > 9223372036854775807", "true"),
        ("self.missing == 1 || self.size == 3", "true"),
        ("self.missing == 1 && self.size == 4", "false"),
        ("self.on ? 'yes' : self.missing", "yes"),
        ("has(self.text) && !has(self.missing)", "true"),
        ("'a' in self.map && !('c' in self.map) && 2 in self.list", "true"),
        ("self.list.map(x, x * 2) == [2, 4, 6]", "true"),
        ("self.list.map(x, x > 1, x)[0]", "2"),
        ("self.list.filter(x, x > 1).size()", "2"),
        ("self.list.exists_one(x, x == 2)", "true"),
        ("self.parts.exists(p, p.count == 1)", "true"),
        ("self.map.map(k, k).join(',')", "a,b"),
        ("self.map.all(k, v, int(v) > 0)", "true"),
        ("self.list.transformList(i, v, i + v).sum()", "9"),
        ("{'a': 1}.transformMap(k, v, k + string(v))['a']", "a1"),
        ("{1: 'x', 2: 'y'}[2]", "y"),
        ("int('17') + int(2.9) + int(3u)", "22"),
        ("string(1.5) + string(true) + string(b'ab') + string(duration('90m'))", "1.5trueab5400s"),
        ("type(1) == int && type('a') == string && type([]) == list && type(null) == null_type", "true"),
        ("dyn(1) == 1.0 && dyn(1) != '1'", "true"),
        ("'abc'.charAt(1) + 'abc'.substring(1) + 'abc'.substring(0, 1)", "bbca"),
        ("'banana'.indexOf('an', 2) + 'banana'.lastIndexOf('an')", "6"),
        ("'a-b-c'.split('-', 2)[1] + 'a-b'.replace('-', '+')", "b-ca+b"),
        ("' Ab '.trim().lowerAscii() + 'ab'.upperAscii()", "abAB"),
        ("'ab12cd3'.find('[0-9]+') + 'ab12cd3'.findAll('[0-9]').join('')", "12123"),
        ("'größe'.matches('^\\\\w+$')", "false"),
        ("'%s|%d|%.2f|%x|%s'.format(['a', 42, 1.0, 255, [1, 2]])", "a|42|1.00|ff|[1, 2]"),
        ("[3, 1, 2].sort() == [1, 2, 3] && [1, 2].isSorted() && [1, 2].min() == 1 && [1.5, 2.5].max() == 2.5", "true"),
        ("[[1], [2, 3]].flatten() == [1, 2, 3] && [1, 2, 1].distinct() == [1, 2]", "true"),
        ("sets.contains([1, 2], [1]) && sets.equivalent([1, 1], [1]) && !sets.intersects([1], [2])", "true"),
        ("timestamp('2026-01-31T12:00:00Z').getHours('02:00')", "14"),
        ("timestamp('2026-01-31T12:00:00Z') - timestamp('2026-01-30T12:00:00Z') == duration('24h')", "true"),
        ("string(timestamp(0) + duration('1h'))", "1970-01-01T01:00:00Z"),
        ("quantity('1Gi').compareTo(quantity('1024Mi'))", "0"),
        ("quantity('1500m').add(quantity('500m')).asInteger()", "2"),
        ("isQuantity('much') || quantity('1').isLessThan(quantity('1m'))", "false"),
        ("cidr('10.0.0.0/8').containsIP('10.1.2.3') && !isIP('x') && ip('::1').family() == 6", "true"),
        ("url('https://example.com:8080/a?x=1').getHost() + url('/a').getEscapedPath()", "example.com:8080/a"),
        ("self.?missing.orValue(5)", "5"),
        ("self.map[?'a'].optMap(x, x + '!').orValue('')", "1!"),
        ("optional.none().hasValue() || optional.of(1).value() == 2", "false"),
        ("[?optional.none(), ?optional.of(1)].size()", "1"),
        ("// a comment\nself.size == 3 // another", "true"),
    ] {
        assert_eq!(evaluate(rule), expected, "{rule}");
    }
}

#[test]
fn errors_are_those_of_the_real_server() {
    for (rule, expected) in [
        ("self.missing.deep == 1", "no such key: missing"),
        ("self.map['c'] == ''", "no such key: c"),
        ("self.list[3] == 1", "index out of bounds: 3"),
        ("self.size / 0 == 1", "division by zero"),
        ("self.size % 0 == 1", "modulus by zero"),
        ("9223372036854775807 + self.size > 0", "integer overflow"),
        ("2u - 3u > 0u", "unsigned integer overflow"),
        ("-(-9223372036854775808) > 0", "integer overflow"),
        ("self.text + 1 == 1", "no such overload"),
        ("self.text && true", "no such overload"),
        ("int(self.text) == 1", "type conversion error from 'string' to 'int'"),
        ("self.text.matches('(' + self.text)", "error parsing regexp: missing closing ): `(größe`"),
        ("[1].filter(x, x > 1).min() == 1", "min called on empty list"),
        ("self.?missing.value() == 1", "optional.none() dereference"),
        ("'abc'.substring(9) == ''", "index out of range: 9"),
        ("self.parts.all(p, p.count == 1)", "no such key: count"),
        ("self.size.all(x, true)", "got 'int', expected iterable type"),
    ] {
        assert_eq!(evaluate(rule), format!("fails: {expected}"), "{rule}");
    }
}

#[test]
fn an_evaluation_that_exceeds_the_budget_is_stopped() {
    let loops =
        (0..12).fold("false".to_owned(), |inner, level| format!("[0,1,2,3,4,5,6,7,8,9].exists(x{level},{inner})"));
    let growing = format!("['x']{}[0] == ''", ".map(x,x+x)".repeat(40));
    let joined = "lists.range(1000).map(x, lists.range(1000).map(y, 'xxxxxxxxxx').join('')).join('') == ''";
    let sliced = "lists.range(100000000).size() == 1";
    let replaced = format!("'{}'{}.size() == 1", "a".repeat(50), ".replace('a', 'aaaaaaaaaa')".repeat(10));
    for rule in [loops.as_str(), growing.as_str(), joined, sliced, replaced.as_str()] {
        assert_eq!(evaluate(rule), "takes too long", "{rule}");
    }
}
