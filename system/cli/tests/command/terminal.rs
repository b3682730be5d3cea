//! The command at a terminal, which the program `script` provides: width, colours, questions and hidden keys.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

use sindri_model::wire::EventStatus;

use crate::reporting_agent::Agent;
use crate::support::{BUNDLE, Broker, parse_cells};

/// Runs a command at a terminal of this width, and types the input. Returns the shown text and the exit code.
fn run_at_terminal(
    broker: &Broker,
    columns: u16,
    arguments: &str,
    input: &str,
    variables: &[(&str, &str)],
) -> (String, i32) {
    let line = format!("stty cols {columns} && exec {} {arguments}", env!("CARGO_BIN_EXE_sindri"));
    let mut process = spawn_at_terminal(broker, &line, variables);
    process.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = process.wait_with_output().unwrap();
    (String::from_utf8(output.stdout).unwrap().replace('\r', ""), output.status.code().unwrap())
}

/// Starts a line of a shell at a terminal; what is written to its standard input is typed.
fn spawn_at_terminal(broker: &Broker, line: &str, variables: &[(&str, &str)]) -> Child {
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--flush", "--command", line, "/dev/null"]);
    command.env_remove("NO_COLOR").env_remove("SINDRI_CONTEXT").env_remove("SINDRI_KEY").env("TERM", "xterm");
    command.env("XDG_CONFIG_HOME", broker.directory.path().join("config")).env("SHELL", "/bin/sh");
    command.env("SINDRI_BROKER", &broker.address).env("SINDRI_KEY_FILE", broker.key_path());
    let command = command.envs(variables.iter().copied()).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().expect("the program script is there")
}

/// Reads what a terminal shows until it contains a text.
fn read_until(shown: &mut impl Read, text: &str) -> String {
    let (mut read, mut chunk) = (Vec::new(), [0; 1024]);
    while !String::from_utf8_lossy(&read).contains(text) {
        let count = shown.read(&mut chunk).unwrap();
        assert!(count > 0, "{text:?} is not in {:?}", String::from_utf8_lossy(&read));
        read.extend_from_slice(&chunk[..count]);
    }
    String::from_utf8_lossy(&read).into_owned()
}

#[test]
fn a_table_fits_the_terminal_and_has_colours_unless_they_are_off() {
    let broker = Broker::start();
    broker.run_successfully(&["agent", "create", "an-agent-with-a-long-name", "--cluster", "prod"]);
    let (table, _) = run_at_terminal(&broker, 60, "agent list", "", &[("NO_COLOR", "1")]);
    assert!(table.lines().all(|line| line.chars().count() <= 60) && table.contains('…'), "{table}");
    assert!(!table.contains('\u{1b}'), "{table:?}");
    let (colored, _) = run_at_terminal(&broker, 200, "agent list", "", &[]);
    assert!(colored.contains("\u{1b}[33minactive\u{1b}[0m"), "{colored:?}");
    let (wide, _) = run_at_terminal(&broker, 60, "agent list -o wide", "", &[("TERM", "dumb")]);
    assert!(!wide.contains('…') && !wide.contains('\u{1b}'), "{wide:?}");
}

#[test]
fn a_deletion_asks_a_person_unless_the_answer_is_given() {
    let broker = Broker::start();
    broker.run_successfully(&["stack", "create", "web"]);
    let stacks = || parse_cells(&broker.run_successfully(&["stack", "list"])).len();
    let (asked, code) = run_at_terminal(&broker, 120, "stack delete web", "n\n", &[]);
    let question =
        format!("broker {}: Delete stack web? Each agent that received it removes its objects. [y/N]", broker.address);
    assert!(asked.contains(&question), "{asked}");
    assert!(asked.contains("sindri: nothing was changed") && code == 1 && stacks() == 1, "{asked} {code}");
    let (asked, code) = run_at_terminal(&broker, 120, "delete web", "y\n", &[]);
    assert!(asked.contains("stack web is deleted") && code == 0 && stacks() == 0, "{asked} {code}");
    broker.run_successfully(&["stack", "create", "web"]);
    let (not_asked, code) = run_at_terminal(&broker, 120, "stack delete web --yes", "", &[]);
    assert!(!not_asked.contains("[y/N]") && code == 0 && stacks() == 0, "{not_asked} {code}");
}

#[test]
fn a_question_is_asked_although_the_output_is_redirected() {
    let broker = Broker::start();
    broker.run_successfully(&["stack", "create", "web"]);
    let log = broker.directory.path().join("err.log");
    let arguments = format!("delete web > {0} 2> {0}", log.display());
    let (asked, code) = run_at_terminal(&broker, 120, &arguments, "n\n", &[]);
    assert!(asked.contains("Delete stack web?") && code == 1, "{asked} {code}");
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "sindri: nothing was changed\n");
    assert_eq!(parse_cells(&broker.run_successfully(&["stack", "list"])).len(), 1);
}

#[test]
fn a_command_that_takes_objects_away_asks_and_one_that_takes_nothing_away_does_not() {
    let broker = Broker::start();
    let agent = Agent::active(&broker, "east", "prod");
    for (noun, name) in [("agent", "east"), ("stack", "web")] {
        if noun == "stack" {
            broker.run_successfully(&["stack", "create", "web"]);
        }
        broker.run_successfully(&[noun, "label", name, "edge"]);
        broker.run_successfully(&[noun, "annotate", name, "tier=gold"]);
    }
    broker.run_successfully(&["generator", "register", "default", "east"]);
    let file = broker.write_file("web.yaml", BUNDLE);
    broker.run_successfully(&["apply", "web", "-f", file.to_str().unwrap()]);
    agent.report_conditions(0, &["+Applied", "+Ready"]);
    for (arguments, question) in [
        ("agent unlabel east edge", "Remove edge from agent east? It removes the stacks that it has by it: web. [y/N]"),
        ("stack unlabel web edge", "Remove edge from stack web? Its objects are removed from prod. [y/N]"),
        ("agent unannotate east tier", "Change the annotations of agent east? It removes the stacks"),
        ("stack unannotate web tier", "Change the annotations of stack web? Its objects are removed from prod. [y/N]"),
        ("agent annotate east tier=tin", "Change the annotations of agent east?"),
        ("generator unregister default east", "Unregister agent east from generator default?"),
        ("apply web --empty", "Submit no objects for stack web? Every object of it is deleted on prod. [y/N]"),
        (
            "untarget web east",
            "Remove stack web from agent east? The agent keeps it, because it has the stack by a label",
        ),
    ] {
        let (asked, code) = run_at_terminal(&broker, 200, arguments, "n\n", &[]);
        assert!(asked.contains(question) && code == 1, "{arguments}: {asked} {code}");
        assert!(asked.contains("sindri: nothing was changed"), "{arguments}: {asked}");
    }
    assert_eq!(broker.run_successfully(&["status", "web"]), "STACK  REVISION  prod\nweb    1         Ready\n");
    broker.run_successfully(&["agent", "label", "east", "spare"]);
    broker.run_successfully(&["agent", "annotate", "east", "note=x"]);
    for arguments in ["agent unlabel east spare", "agent unannotate east note", "agent annotate east tier=gold"] {
        let (not_asked, code) = run_at_terminal(&broker, 200, arguments, "", &[]);
        assert!(!not_asked.contains("[y/N]") && code == 0, "{arguments}: {not_asked} {code}");
    }
}

#[test]
fn an_interruption_at_the_hidden_prompt_lets_the_terminal_show_what_is_typed_again() {
    let broker = Broker::start();
    let line = format!(
        "trap : INT; unset SINDRI_BROKER SINDRI_KEY_FILE; {} context set one --broker {}; echo code $?; stty -a",
        env!("CARGO_BIN_EXE_sindri"),
        broker.address
    );
    let mut process = spawn_at_terminal(&broker, &line, &[]);
    let (mut typed, mut shown) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
    read_until(&mut shown, "(empty for sindri login): ");
    typed.write_all(b"\x03").unwrap();
    let rest = read_until(&mut shown, "echok");
    assert!(rest.contains("code 130") && rest.contains("sindri: interrupted"), "{rest}");
    assert!(rest.contains(" echo ") && !rest.contains("-echo "), "{rest}");
    drop(typed);
    process.wait().unwrap();
}

#[test]
fn long_causes_are_wrapped_at_words() {
    let broker = Broker::start();
    let agent = Agent::with_stack(&broker);
    let words =
        "the admission webhook policy.example.com refused the object because its image has no digest ".repeat(2);
    agent.report(EventStatus::Failure, Some(words.trim()));
    let (status, _) = run_at_terminal(&broker, 60, "status", "", &[("NO_COLOR", "1")]);
    let causes: Vec<&str> = status.lines().skip_while(|line| !line.is_empty()).skip(1).collect();
    assert_eq!(causes.len(), 4, "{status}");
    assert!(causes[1..].iter().all(|line| line.starts_with("  ")), "{status}");
    assert!(causes.iter().all(|line| line.chars().count() <= 60), "{status}");
    assert_eq!(causes[0], "web Failed on prod: the admission webhook policy.example.com");
}

#[test]
fn a_watch_and_a_wait_paint_the_terminal_again_and_followed_events_are_appended() {
    let broker = Broker::start();
    let agent = Agent::with_stack(&broker);
    let program = env!("CARGO_BIN_EXE_sindri");
    let start = |arguments: &str| {
        let line = format!("stty cols 100 && exec timeout --foreground 30 {program} {arguments}");
        let mut process = spawn_at_terminal(&broker, &line, &[("NO_COLOR", "1")]);
        let shown = process.stdout.take().unwrap();
        (process, shown)
    };
    let stop = |mut process: Child| {
        // The terminal is closed, which ends what runs at it.
        process.kill().unwrap();
        process.wait().unwrap();
    };
    let first_sequence = agent.report_conditions(0, &["+Applied", "+Ready"]);
    let (watch, mut shown) = start("status web --watch");
    let first = read_until(&mut shown, "Ready");
    assert!(first.starts_with("\u{1b}[H\u{1b}[2J"), "{first:?}");
    let file = broker.write_file("other.yaml", &BUNDLE.replace("name: a", "name: c"));
    let (wait, mut progress) = start(&format!("apply web -f {} --wait", file.display()));
    read_until(&mut progress, "Pending");
    agent.report_conditions(first_sequence, &["-Applied Progressing 0 of 1 objects"]);
    let changed = read_until(&mut progress, "0 of 1 objects");
    assert!(changed.contains("\u{1b}[2A\r\u{1b}[J"), "the two lines of the table are replaced: {changed:?}");
    let watched = read_until(&mut shown, "Progressing");
    assert!(watched.contains("\u{1b}[H\u{1b}[2J"), "{watched:?}");
    stop(watch);
    agent.report_conditions(first_sequence, &["+Applied", "+Ready"]);
    read_until(&mut progress, "Ready");
    assert!(wait.wait_with_output().unwrap().status.success());

    agent.report(EventStatus::Failure, Some("no room"));
    let (follow, mut events) = start("events web --follow");
    read_until(&mut events, "failed  no room");
    agent.report(EventStatus::Success, None);
    let appended = read_until(&mut events, "applied");
    assert!(!appended.contains('\u{1b}') && !appended.contains("no room"), "{appended:?}");
    stop(follow);
}

#[test]
fn a_rollback_to_any_text_without_objects_asks() {
    let broker = Broker::start();
    let _agent = Agent::with_stack(&broker);
    let empty = "# nothing any more\napiVersion: sindri.dev/v1\nkind: EmptyBundle\n";
    let empty = broker.write_file("empty.yaml", empty);
    broker.run_successfully(&["apply", "web", "-f", empty.to_str().unwrap()]);
    let file = broker.write_file("again.yaml", BUNDLE);
    broker.run_successfully(&["apply", "web", "-f", file.to_str().unwrap()]);
    let (asked, code) = run_at_terminal(&broker, 200, "rollback web --to 2", "n\n", &[]);
    assert!(asked.contains("Submit no objects for stack web? Every object of it is deleted on prod. [y/N]"), "{asked}");
    assert!(code == 1 && parse_cells(&broker.run_successfully(&["history", "web"])).len() == 3, "{asked} {code}");
    let (not_asked, code) = run_at_terminal(&broker, 200, "rollback web --to 1", "", &[]);
    assert!(!not_asked.contains("[y/N]") && code == 0, "{not_asked} {code}");
}

#[test]
fn a_plan_is_shown_at_the_terminal_that_is_asked_and_what_was_decided_is_said() {
    let broker = Broker::start();
    let agent = Agent::with_stack(&broker);
    let first = agent.request_approval("12 of 13 objects would go", "- delete Namespace production\n- keep");
    let log = broker.directory.path().join("out.log");
    for arguments in
        [format!("approve --all > {}", log.display()), format!("approve --all -o json > {}", log.display())]
    {
        let (asked, code) = run_at_terminal(&broker, 200, &arguments, "n\n", &[]);
        assert!(asked.contains("- delete Namespace production\n- keep\n"), "{asked:?}");
        assert!(asked.contains("Approve this plan of stack web on agent east? [y/N]") && code == 1, "{asked} {code}");
        assert!(asked.contains("sindri: this plan was not decided"), "{asked}");
    }
    assert!(broker.run_successfully(&["approvals", &first]).contains("- delete Namespace production\n- keep\n"));
    let west = Agent::active(&broker, "west", "far");
    broker.run_successfully(&["target", "web", "west"]);
    west.request_approval("12 of 13 objects would go", "- delete ConfigMap b/a");
    let (asked, code) = run_at_terminal(&broker, 200, "approve --all", "y\nn\n", &[]);
    let summary = asked.lines().last().unwrap();
    assert!(summary.contains("sindri: this plan was not decided, and no later one; before that, "), "{asked}");
    assert!(summary.ends_with(" is approved") && code == 1, "{asked} {code}");
    assert_eq!(parse_cells(&broker.run_successfully(&["approvals"])).len(), 1);
    let (none, code) = run_at_terminal(&broker, 200, "approve --all --yes", "", &[]);
    assert!(none.contains(" is approved") && code == 0, "{none}");
    assert_eq!(broker.run_successfully(&["approve", "--all"]), "no plan waits for an approval\n");
}

#[test]
fn a_question_says_what_a_removal_does_to_the_objects() {
    let broker = Broker::start();
    let _agent = Agent::with_stack(&broker);
    broker.run_successfully(&["agent", "label", "east", "edge"]);
    broker.run_successfully(&["stack", "label", "web", "edge"]);
    let (asked, _) = run_at_terminal(&broker, 200, "untarget web east", "n\n", &[]);
    assert!(
        asked.contains("The agent keeps it, because it has the stack by a label or an annotation too. [y/N]"),
        "{asked}"
    );
    broker.run_successfully(&["stack", "unlabel", "web", "edge"]);
    broker.run_successfully(&["stack", "annotate", "web", "sindri.dev/removal=release"]);
    let (asked, _) = run_at_terminal(&broker, 200, "untarget web east", "n\n", &[]);
    assert!(asked.contains("The agent keeps its objects, without their owner. [y/N]"), "{asked}");
    let (asked, _) = run_at_terminal(&broker, 200, "delete web", "n\n", &[]);
    assert!(
        asked.contains("Delete stack web? Its objects stay in every cluster, without their owner. [y/N]"),
        "{asked}"
    );
    assert!(broker.run_successfully(&["delete", "web"]).ends_with("keeps its objects, without their owner\n"));
}
