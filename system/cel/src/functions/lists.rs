//! Lists: order, sums and sets.

use std::cmp::Ordering;

use super::context::{EvaluationContext, EvaluationResult, Table, length_value};
use super::operators::{contained, equal, order, sum};
use crate::evaluation_error::EvaluationError;
use crate::value::{Cel, List};

pub(super) const TABLE: Table = &[
    ("isSorted", is_sorted),
    ("sum", total),
    ("min", |arguments, context| extreme(arguments, context, "min", Ordering::Greater)),
    ("max", |arguments, context| extreme(arguments, context, "max", Ordering::Less)),
    ("sort", sort),
    ("slice", slice),
    ("flatten", flatten),
    ("reverse", reverse),
    ("distinct", distinct),
    ("first", |arguments, _| Ok(Cel::Optional(end(arguments, false)?.map(std::rc::Rc::new)))),
    ("last", |arguments, _| Ok(Cel::Optional(end(arguments, true)?.map(std::rc::Rc::new)))),
    ("lists.range", range),
    ("sets.contains", |arguments, context| sets(arguments, context, has_all)),
    ("sets.equivalent", |arguments, context| {
        sets(arguments, context, |one, two, context| Ok(has_all(one, two, context)? && has_all(two, one, context)?))
    }),
    ("sets.intersects", |arguments, context| sets(arguments, context, has_some)),
];

fn one<'l, 'a>(arguments: &'l [Cel<'a>]) -> Result<&'l List<'a>, EvaluationError> {
    match arguments {
        [Cel::List(list)] => Ok(list),
        _ => Err(EvaluationError::no_such_overload()),
    }
}

/// Returns the index of an element in a list.
pub(super) fn position<'a>(
    list: &List<'a>,
    value: &Cel<'a>,
    context: &mut EvaluationContext,
    from_end: bool,
) -> EvaluationResult<'a> {
    let mut places: Vec<usize> = (0..list.len()).collect();
    context.steps.take(places.len())?;
    if from_end {
        places.reverse();
    }
    for at in places {
        let Some(element) = list.get(at) else { continue };
        if equal(&element, value, 0, &mut context.steps)? {
            return Ok(length_value(at));
        }
    }
    Ok(Cel::Int(-1))
}

fn is_sorted<'a>(arguments: &[Cel<'a>], context: &mut EvaluationContext) -> EvaluationResult<'a> {
    let list = one(arguments)?;
    let mut before: Option<Cel<'a>> = None;
    for element in list.iter() {
        context.steps.take(1)?;
        if let Some(before) = &before
            && order(before, &element, &mut context.steps)?.is_gt()
        {
            return Ok(Cel::Bool(false));
        }
        before = Some(element);
    }
    Ok(Cel::Bool(true))
}

fn total<'a>(arguments: &[Cel<'a>], context: &mut EvaluationContext) -> EvaluationResult<'a> {
    let mut total: Option<Cel<'a>> = None;
    for element in one(arguments)?.iter() {
        context.steps.take(1)?;
        total = Some(match &total {
            None => element,
            Some(total) => sum(total, &element)?,
        });
    }
    Ok(total.unwrap_or(Cel::Int(0)))
}

fn extreme<'a>(
    arguments: &[Cel<'a>],
    context: &mut EvaluationContext,
    name: &str,
    replaced: Ordering,
) -> EvaluationResult<'a> {
    let mut best: Option<Cel<'a>> = None;
    for element in one(arguments)?.iter() {
        context.steps.take(1)?;
        let is_better = match &best {
            None => true,
            Some(best) => order(best, &element, &mut context.steps)? == replaced,
        };
        if is_better {
            best = Some(element);
        }
    }
    best.ok_or_else(|| EvaluationError::new(format!("{name} called on empty list")))
}

/// Sorts by insertion: stable, and able to return an error.
fn sort<'a>(arguments: &[Cel<'a>], context: &mut EvaluationContext) -> EvaluationResult<'a> {
    let mut sorted: Vec<Cel<'a>> = Vec::new();
    for element in one(arguments)?.iter() {
        let (mut low, mut high) = (0, sorted.len());
        while low < high {
            let middle = low + (high - low) / 2;
            context.steps.take(1)?;
            if order(&sorted[middle], &element, &mut context.steps)?.is_gt() { high = middle } else { low = middle + 1 }
        }
        context.steps.take(1 + (sorted.len() - low) / 16)?;
        sorted.insert(low, element);
    }
    Ok(Cel::list(sorted))
}

fn slice<'a>(arguments: &[Cel<'a>], context: &mut EvaluationContext) -> EvaluationResult<'a> {
    let [Cel::List(list), Cel::Int(start), Cel::Int(end)] = arguments else {
        return Err(EvaluationError::no_such_overload());
    };
    let refuse = |why: String| {
        Err(EvaluationError::with_redacted(format!("cannot slice({start}, {end}), {why}"), "cannot slice"))
    };
    let (Ok(from), Ok(to)) = (usize::try_from(*start), usize::try_from(*end)) else {
        return refuse("negative indexes not supported".to_owned());
    };
    if from > to {
        return refuse("start index must be less than or equal to end index".to_owned());
    }
    if to > list.len() {
        return refuse(format!("list is length {}", list.len()));
    }
    context.steps.take(to - from)?;
    Ok(Cel::list((from..to).filter_map(|at| list.get(at)).collect()))
}

fn flatten<'a>(arguments: &[Cel<'a>], context: &mut EvaluationContext) -> EvaluationResult<'a> {
    let (list, levels) = match arguments {
        [Cel::List(list)] => (list, 1),
        [Cel::List(list), Cel::Int(levels)] => (list, *levels),
        _ => return Err(EvaluationError::no_such_overload()),
    };
    let levels = usize::try_from(levels).map_err(|_| EvaluationError::new("level must be non-negative"))?;
    let mut flat = Vec::new();
    // Objects are not nested deeper than this.
    gather(list, levels.min(128), context, &mut flat)?;
    Ok(Cel::list(flat))
}

fn gather<'a>(
    list: &List<'a>,
    levels: usize,
    context: &mut EvaluationContext,
    flat: &mut Vec<Cel<'a>>,
) -> Result<(), EvaluationError> {
    for element in list.iter() {
        context.steps.take(1)?;
        match &element {
            Cel::List(inner) if levels > 0 => gather(inner, levels - 1, context, flat)?,
            _ => flat.push(element),
        }
    }
    Ok(())
}

fn reverse<'a>(arguments: &[Cel<'a>], context: &mut EvaluationContext) -> EvaluationResult<'a> {
    let list = one(arguments)?;
    context.steps.take(list.len())?;
    let mut elements: Vec<Cel<'a>> = list.iter().collect();
    elements.reverse();
    Ok(Cel::list(elements))
}

fn distinct<'a>(arguments: &[Cel<'a>], context: &mut EvaluationContext) -> EvaluationResult<'a> {
    let mut kept: Vec<Cel<'a>> = Vec::new();
    for element in one(arguments)?.iter() {
        let mut is_known = false;
        for known in &kept {
            is_known = is_known || equal(known, &element, 0, &mut context.steps)?;
        }
        if !is_known {
            kept.push(element);
        }
    }
    Ok(Cel::list(kept))
}

fn end<'a>(arguments: &[Cel<'a>], is_last: bool) -> Result<Option<Cel<'a>>, EvaluationError> {
    let list = one(arguments)?;
    Ok(list.get(if is_last { list.len().saturating_sub(1) } else { 0 }))
}

fn range<'a>(arguments: &[Cel<'a>], context: &mut EvaluationContext) -> EvaluationResult<'a> {
    let [Cel::Int(end)] = arguments else { return Err(EvaluationError::no_such_overload()) };
    context.steps.take(usize::try_from(*end).unwrap_or(0))?;
    Ok(Cel::list((0..*end).map(Cel::Int).collect()))
}

type Compared = for<'a> fn(&Cel<'a>, &Cel<'a>, &mut EvaluationContext) -> Result<bool, EvaluationError>;

fn sets<'a>(arguments: &[Cel<'a>], context: &mut EvaluationContext, holds: Compared) -> EvaluationResult<'a> {
    match arguments {
        [one @ Cel::List(_), two @ Cel::List(_)] => holds(one, two, context).map(Cel::Bool),
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn has_all<'a>(set: &Cel<'a>, elements: &Cel<'a>, context: &mut EvaluationContext) -> Result<bool, EvaluationError> {
    let Cel::List(elements) = elements else { return Err(EvaluationError::no_such_overload()) };
    for element in elements.iter() {
        if !contained(&element, set, &mut context.steps)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn has_some<'a>(set: &Cel<'a>, elements: &Cel<'a>, context: &mut EvaluationContext) -> Result<bool, EvaluationError> {
    let Cel::List(elements) = elements else { return Err(EvaluationError::no_such_overload()) };
    for element in elements.iter() {
        if contained(&element, set, &mut context.steps)? {
            return Ok(true);
        }
    }
    Ok(false)
}
