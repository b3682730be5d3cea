//! Lists: in what order they are, what they add up to, and sets of their elements.

use std::cmp::Ordering;

use super::operators::{contained, equal, order, sum};
use super::{Outcome, Table, Tools, count};
use crate::failure::Failure;
use crate::value::{Cel, List};

pub(super) const TABLE: Table = &[
    ("isSorted", is_sorted),
    ("sum", total),
    ("min", |arguments, tools| extreme(arguments, tools, "min", Ordering::Greater)),
    ("max", |arguments, tools| extreme(arguments, tools, "max", Ordering::Less)),
    ("sort", sort),
    ("slice", slice),
    ("flatten", flatten),
    ("reverse", reverse),
    ("distinct", distinct),
    ("first", |arguments, _| Ok(Cel::Optional(end(arguments, false)?.map(std::rc::Rc::new)))),
    ("last", |arguments, _| Ok(Cel::Optional(end(arguments, true)?.map(std::rc::Rc::new)))),
    ("lists.range", range),
    ("sets.contains", |arguments, tools| sets(arguments, tools, has_all)),
    ("sets.equivalent", |arguments, tools| {
        sets(arguments, tools, |one, two, tools| Ok(has_all(one, two, tools)? && has_all(two, one, tools)?))
    }),
    ("sets.intersects", |arguments, tools| sets(arguments, tools, has_some)),
];

fn one<'l, 'a>(arguments: &'l [Cel<'a>]) -> Result<&'l List<'a>, Failure> {
    match arguments {
        [Cel::List(list)] => Ok(list),
        _ => Err(Failure::no_such_overload()),
    }
}

/// Where something is in a list.
pub(super) fn position<'a>(list: &List<'a>, value: &Cel<'a>, tools: &mut Tools, from_end: bool) -> Outcome<'a> {
    let mut places: Vec<usize> = (0..list.len()).collect();
    tools.steps.take(places.len())?;
    if from_end {
        places.reverse();
    }
    for at in places {
        let Some(element) = list.get(at) else { continue };
        if equal(&element, value, 0, &mut tools.steps)? {
            return Ok(count(at));
        }
    }
    Ok(Cel::Int(-1))
}

fn is_sorted<'a>(arguments: &[Cel<'a>], tools: &mut Tools) -> Outcome<'a> {
    let list = one(arguments)?;
    let mut before: Option<Cel<'a>> = None;
    for element in list.iter() {
        tools.steps.take(1)?;
        if let Some(before) = &before
            && order(before, &element, &mut tools.steps)?.is_gt()
        {
            return Ok(Cel::Bool(false));
        }
        before = Some(element);
    }
    Ok(Cel::Bool(true))
}

fn total<'a>(arguments: &[Cel<'a>], tools: &mut Tools) -> Outcome<'a> {
    let mut total: Option<Cel<'a>> = None;
    for element in one(arguments)?.iter() {
        tools.steps.take(1)?;
        total = Some(match &total {
            None => element,
            Some(total) => sum(total, &element)?,
        });
    }
    Ok(total.unwrap_or(Cel::Int(0)))
}

fn extreme<'a>(arguments: &[Cel<'a>], tools: &mut Tools, name: &str, replaced: Ordering) -> Outcome<'a> {
    let mut best: Option<Cel<'a>> = None;
    for element in one(arguments)?.iter() {
        tools.steps.take(1)?;
        let is_better = match &best {
            None => true,
            Some(best) => order(best, &element, &mut tools.steps)? == replaced,
        };
        if is_better {
            best = Some(element);
        }
    }
    best.ok_or_else(|| Failure::wrong(format!("{name} called on empty list")))
}

/// By inserting each where it belongs: an error ends it, and the order of equals stays.
fn sort<'a>(arguments: &[Cel<'a>], tools: &mut Tools) -> Outcome<'a> {
    let mut sorted: Vec<Cel<'a>> = Vec::new();
    for element in one(arguments)?.iter() {
        let (mut low, mut high) = (0, sorted.len());
        while low < high {
            let middle = low + (high - low) / 2;
            tools.steps.take(1)?;
            if order(&sorted[middle], &element, &mut tools.steps)?.is_gt() { high = middle } else { low = middle + 1 }
        }
        tools.steps.take(1 + (sorted.len() - low) / 16)?;
        sorted.insert(low, element);
    }
    Ok(Cel::list(sorted))
}

fn slice<'a>(arguments: &[Cel<'a>], tools: &mut Tools) -> Outcome<'a> {
    let [Cel::List(list), Cel::Int(start), Cel::Int(end)] = arguments else { return Err(Failure::no_such_overload()) };
    let refuse = |why: String| Err(Failure::about(format!("cannot slice({start}, {end}), {why}"), "cannot slice"));
    let (Ok(from), Ok(to)) = (usize::try_from(*start), usize::try_from(*end)) else {
        return refuse("negative indexes not supported".to_owned());
    };
    if from > to {
        return refuse("start index must be less than or equal to end index".to_owned());
    }
    if to > list.len() {
        return refuse(format!("list is length {}", list.len()));
    }
    tools.steps.take(to - from)?;
    Ok(Cel::list((from..to).filter_map(|at| list.get(at)).collect()))
}

fn flatten<'a>(arguments: &[Cel<'a>], tools: &mut Tools) -> Outcome<'a> {
    let (list, levels) = match arguments {
        [Cel::List(list)] => (list, 1),
        [Cel::List(list), Cel::Int(levels)] => (list, *levels),
        _ => return Err(Failure::no_such_overload()),
    };
    let levels = usize::try_from(levels).map_err(|_| Failure::wrong("level must be non-negative"))?;
    let mut flat = Vec::new();
    // Nothing is nested deeper than this: an object may not be.
    gather(list, levels.min(128), tools, &mut flat)?;
    Ok(Cel::list(flat))
}

fn gather<'a>(list: &List<'a>, levels: usize, tools: &mut Tools, flat: &mut Vec<Cel<'a>>) -> Result<(), Failure> {
    for element in list.iter() {
        tools.steps.take(1)?;
        match &element {
            Cel::List(inner) if levels > 0 => gather(inner, levels - 1, tools, flat)?,
            _ => flat.push(element),
        }
    }
    Ok(())
}

fn reverse<'a>(arguments: &[Cel<'a>], tools: &mut Tools) -> Outcome<'a> {
    let list = one(arguments)?;
    tools.steps.take(list.len())?;
    let mut elements: Vec<Cel<'a>> = list.iter().collect();
    elements.reverse();
    Ok(Cel::list(elements))
}

fn distinct<'a>(arguments: &[Cel<'a>], tools: &mut Tools) -> Outcome<'a> {
    let mut kept: Vec<Cel<'a>> = Vec::new();
    for element in one(arguments)?.iter() {
        let mut is_known = false;
        for known in &kept {
            is_known = is_known || equal(known, &element, 0, &mut tools.steps)?;
        }
        if !is_known {
            kept.push(element);
        }
    }
    Ok(Cel::list(kept))
}

fn end<'a>(arguments: &[Cel<'a>], is_last: bool) -> Result<Option<Cel<'a>>, Failure> {
    let list = one(arguments)?;
    Ok(list.get(if is_last { list.len().saturating_sub(1) } else { 0 }))
}

fn range<'a>(arguments: &[Cel<'a>], tools: &mut Tools) -> Outcome<'a> {
    let [Cel::Int(end)] = arguments else { return Err(Failure::no_such_overload()) };
    tools.steps.take(usize::try_from(*end).unwrap_or(0))?;
    Ok(Cel::list((0..*end).map(Cel::Int).collect()))
}

type Compared = for<'a> fn(&Cel<'a>, &Cel<'a>, &mut Tools) -> Result<bool, Failure>;

fn sets<'a>(arguments: &[Cel<'a>], tools: &mut Tools, holds: Compared) -> Outcome<'a> {
    match arguments {
        [one @ Cel::List(_), two @ Cel::List(_)] => holds(one, two, tools).map(Cel::Bool),
        _ => Err(Failure::no_such_overload()),
    }
}

fn has_all<'a>(set: &Cel<'a>, elements: &Cel<'a>, tools: &mut Tools) -> Result<bool, Failure> {
    let Cel::List(elements) = elements else { return Err(Failure::no_such_overload()) };
    for element in elements.iter() {
        if !contained(&element, set, &mut tools.steps)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn has_some<'a>(set: &Cel<'a>, elements: &Cel<'a>, tools: &mut Tools) -> Result<bool, Failure> {
    let Cel::List(elements) = elements else { return Err(Failure::no_such_overload()) };
    for element in elements.iter() {
        if contained(&element, set, &mut tools.steps)? {
            return Ok(true);
        }
    }
    Ok(false)
}
