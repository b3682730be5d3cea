//! Dependencies between stacks of one generator, declared by the annotation `sindri.dev/depends-on`: names of stacks, separated
//! by commas.

use std::collections::BTreeMap;

use sindri_model::wire::{DEPENDS_ON_ANNOTATION, Stack, StackAnnotation, StackDependency, StackPolicy};
use sindri_model::{AgentId, GeneratorId, StackId};

use crate::store::records::{RecordKind, StoreError};
use crate::store::sql::shared::lookup::{as_missing_reference, require_that};
use crate::store::sql::shared::session::{Session, fetch_all, fetch_one, single_column};
use crate::store::sql::shared::values::{Row, values};

/// Names of the stacks on which each stack of a generator depends.
type Dependencies = BTreeMap<String, Vec<String>>;

/// Rejects an annotation of a stack that names a stack that does not exist, or makes stacks depend on themselves.
pub(crate) async fn check(
    session: &mut dyn Session,
    stack: &Stack,
    annotation: &StackAnnotation,
) -> Result<(), StoreError> {
    if annotation.key != DEPENDS_ON_ANNOTATION {
        return Ok(());
    }
    let names: Vec<String> = parse_names(&annotation.value).collect();
    for name in &names {
        let sql = "SELECT id FROM stacks WHERE generator_id = ?1 AND name = ?2 AND deleted_at IS NULL";
        let found: Option<StackId> = fetch_one(session, sql, values![stack.generator_id, name], single_column).await?;
        require_that(found.is_some(), RecordKind::Stack, name).map_err(as_missing_reference)?;
    }
    let mut dependencies = list_declared(session, stack.generator_id).await?;
    dependencies.insert(stack.name.clone(), names);
    require_no_cycle(&dependencies, &stack.name)
}

/// Rejects a new name of a stack that makes stacks depend on themselves, because other stacks already name it.
pub(crate) async fn check_name(session: &mut dyn Session, stack: &Stack, name: &str) -> Result<(), StoreError> {
    let mut dependencies = list_declared(session, stack.generator_id).await?;
    let names = dependencies.remove(&stack.name).unwrap_or_default();
    dependencies.insert(name.to_owned(), names);
    require_no_cycle(&dependencies, name)
}

async fn list_declared(session: &mut dyn Session, generator: GeneratorId) -> Result<Dependencies, StoreError> {
    let sql = "SELECT name, value FROM stacks JOIN stack_annotations ON stack_annotations.stack_id = stacks.id
               WHERE generator_id = ?1 AND deleted_at IS NULL AND key = ?2";
    let declared: Vec<(String, String)> =
        fetch_all(session, sql, values![generator, DEPENDS_ON_ANNOTATION], read_pair).await?;
    Ok(declared.into_iter().map(|(name, value)| (name, parse_names(&value).collect())).collect())
}

fn require_no_cycle(dependencies: &Dependencies, start: &str) -> Result<(), StoreError> {
    match find_cycle(dependencies, start) {
        Some(cycle) => Err(StoreError::DependencyCycle(cycle)),
        None => Ok(()),
    }
}

/// Adds the dependencies that the annotations of the policies declare. A name has an id if its stack is in the agent's target
/// state.
pub(crate) async fn add_to_policies(
    session: &mut dyn Session,
    agent: AgentId,
    policies: &mut [StackPolicy],
) -> Result<(), StoreError> {
    if policies.iter().all(|policy| !policy.annotations.contains_key(DEPENDS_ON_ANNOTATION)) {
        return Ok(());
    }
    let sql = "SELECT stacks.id, generator_id, name FROM assignments JOIN stacks ON stacks.id = assignments.stack_id
               WHERE assignments.agent_id = ?1 AND wanted = 1";
    let stacks: Vec<(StackId, GeneratorId, String)> = fetch_all(session, sql, values![agent], read_stack).await?;
    let generators: BTreeMap<StackId, GeneratorId> = stacks.iter().map(|(id, owner, _)| (*id, *owner)).collect();
    let ids: BTreeMap<(GeneratorId, &str), StackId> =
        stacks.iter().map(|(id, owner, name)| ((*owner, name.as_str()), *id)).collect();
    for policy in policies {
        let Some(value) = policy.annotations.get(DEPENDS_ON_ANNOTATION) else { continue };
        let generator = generators.get(&policy.stack_id);
        policy.depends_on = parse_names(value)
            .map(|name| {
                let stack_id = generator.and_then(|generator| ids.get(&(*generator, name.as_str())).copied());
                StackDependency { name, stack_id }
            })
            .collect();
    }
    Ok(())
}

fn parse_names(value: &str) -> impl Iterator<Item = String> {
    value.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned)
}

/// Returns the path from a stack along its dependencies back to itself, if there is one.
fn find_cycle(dependencies: &Dependencies, start: &str) -> Option<Vec<String>> {
    let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut next = vec![start];
    while let Some(stack) = next.pop() {
        for dependency in dependencies.get(stack).into_iter().flatten() {
            if dependency == start {
                let back = std::iter::successors(Some(stack), |stack| came_from.get(stack).copied());
                let mut path: Vec<String> = back.map(str::to_owned).collect();
                path.reverse();
                path.push(start.to_owned());
                return Some(path);
            }
            if !came_from.contains_key(dependency.as_str()) {
                came_from.insert(dependency, stack);
                next.push(dependency);
            }
        }
    }
    None
}

fn read_pair(row: &mut Row) -> Result<(String, String), StoreError> {
    Ok((row.take()?, row.take()?))
}

fn read_stack(row: &mut Row) -> Result<(StackId, GeneratorId, String), StoreError> {
    Ok((row.take()?, row.take()?, row.take()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_is_found_with_its_path() {
        let declare = |pairs: &[(&str, &str)]| -> Dependencies {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), parse_names(value).collect())).collect()
        };
        let chain = declare(&[("web", "api, cache"), ("api", "db"), ("cache", "db")]);
        assert_eq!(find_cycle(&chain, "web"), None);
        let cycle = declare(&[("web", "api, cache"), ("api", "db"), ("db", "web")]);
        assert_eq!(find_cycle(&cycle, "db").unwrap().join(" "), "db web api db");
        assert_eq!(find_cycle(&declare(&[("web", "web")]), "web").unwrap().join(" "), "web web");
        assert_eq!(find_cycle(&cycle, "cache"), None, "a cycle of others is not this stack's");
    }
}
