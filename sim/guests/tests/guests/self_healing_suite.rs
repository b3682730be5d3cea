//! The correct self-healing controller has every property, and each mistake is caught by the property that is about it.

use serde_json::Value;
use sindri_guests::harness::simulate;
use sindri_guests::self_healing::{AGENT, Variant};
use sindri_world::engine::EngineKind;
use sindri_world::trace;

use crate::self_healing_properties::{Property, SUITE};
use crate::self_healing_support::{API, KEY, NAMESPACE, add_oracles, start, statuses};

/// Checks a property of a variant; violations of the oracles count too.
fn check_property(property: Property, variant: Variant, engine: EngineKind, seed: u64) -> Result<(), String> {
    simulate(engine, seed, |world| {
        start(world, variant);
        if variant == Variant::Correct {
            add_oracles(world);
        }
        property(world)?;
        world.violations().first().cloned().map_or(Ok(()), Err)
    })
}

#[test]
fn the_correct_controller_has_every_property() {
    for (name, property) in SUITE {
        for (engine, seed) in [(EngineKind::Fast, 2), (EngineKind::Turmoil, 3)] {
            let result = check_property(property, Variant::Correct, engine, seed);
            assert_eq!(result, Ok(()), "{name}, {} engine, seed {seed}", engine.name());
        }
    }
}

/// Returns the properties that a variant does not have.
fn violated(variant: Variant) -> Vec<&'static str> {
    // A controller that never rests makes a second of virtual time expensive.
    let is_checked = |name: &str| variant != Variant::WritesStatusAlways || name == "quiet";
    let checked = SUITE.iter().filter(|(name, _)| is_checked(name));
    let failing = checked.filter(|(_, property)| check_property(*property, variant, EngineKind::Fast, 1).is_err());
    failing.map(|(name, _)| *name).collect()
}

/// Properties that catch each mistake.
fn expected_violations(variant: Variant) -> &'static [&'static str] {
    match variant {
        Variant::Correct => &[],
        Variant::IgnoresReferences | Variant::IgnoresIndirectReferences => &["references"],
        Variant::AdoptsForeignObjects => &["ownership", "recreation"],
        Variant::IgnoresUid => &["recreation"],
        // A child without an owner causes no reconciliation either.
        Variant::OmitsOwnerReference => &["repair", "deletion", "recreation"],
        Variant::KeepsUndeclaredChildren => &["undeclared"],
        Variant::DeletesWithoutReferences => &["missing reference"],
        Variant::KeepsOldPods => &["rollout"],
        Variant::PendingAtEachRepair => &["status", "degraded"],
        Variant::ReadyForever => &["degraded"],
        Variant::WritesStatusAlways => &["quiet"],
        Variant::NoResync => &["missed event"],
    }
}

#[test]
fn each_mistake_is_caught_by_the_property_that_is_about_it() {
    for variant in Variant::WRONG {
        assert_eq!(violated(variant), expected_violations(variant), "{variant:?}");
    }
}

#[test]
fn the_page_lists_each_mistake_with_the_properties_that_catch_it() {
    let page = include_str!("../../../../docs/guests.md");
    for variant in Variant::WRONG {
        let start = format!("| self-healing | `{variant:?}` |");
        let line = page.lines().find(|line| line.starts_with(&start));
        let line = line.unwrap_or_else(|| panic!("the page does not list {variant:?}"));
        for property in expected_violations(variant) {
            assert!(line.contains(&format!("`{property}`")), "{property} of {variant:?}");
        }
    }
}

#[test]
fn a_key_is_in_no_log_line_and_in_no_status() {
    simulate(EngineKind::Fast, 4, |world| {
        start(world, Variant::Correct);
        for (_, property) in SUITE.iter().take(2) {
            assert_eq!(property(world), Ok(()));
            world.delete(API, AGENT, NAMESPACE, "bot");
            world.advance(std::time::Duration::from_secs(10));
        }
        let trace = trace::take();
        assert!(trace.lines().len() > 50);
        let statuses: String = statuses(world, 0, "bot").iter().map(Value::to_string).collect();
        assert!(statuses.contains("pods are ready"));
        // In Base64 too.
        for secret in [KEY, "ZG8tbm90LXNob3ctdGhpcy1rZXk"] {
            assert!(!trace.lines().iter().any(|line| line.contains(secret)), "{secret} in the log");
            assert!(!statuses.contains(secret), "{secret} in a status");
        }
    });
}
