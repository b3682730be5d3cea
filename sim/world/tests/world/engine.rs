//! Both engines: time, network, kill and restart, panics, and the same run twice.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use sindri_world::engine::{Engine, EngineKind, HostNetwork, Latency, Program};
use sindri_world::isolate;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

type Log = Arc<Mutex<Vec<String>>>;

fn run_until(engine: &mut dyn Engine, end: Duration) {
    while engine.now() < end {
        engine.step(end).unwrap();
    }
}

fn program<F, R>(body: F) -> Program
where
    F: Fn(HostNetwork) -> R + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    Box::new(move |port| Box::pin(body(port)))
}

/// Returns a server that responds to each byte with the next one.
fn echo() -> Program {
    program(|port| async move {
        let mut listener = port.listen(7).await.unwrap();
        loop {
            let (mut stream, ()) = axum::serve::Listener::accept(&mut listener).await;
            while let Ok(byte) = stream.read_u8().await {
                if stream.write_u8(byte.wrapping_add(1)).await.is_err() {
                    break;
                }
            }
        }
    })
}

/// Returns a client that sends a byte once a second over a new connection, and logs the time and the response.
fn client(log: Log) -> Program {
    program(move |port| {
        let log = log.clone();
        async move {
            let start = Instant::now();
            loop {
                let exchange = async {
                    let mut stream = port.connect("server", 7, None).await?;
                    stream.write_u8(41).await?;
                    stream.read_u8().await
                };
                let response = match tokio::time::timeout(Duration::from_secs(5), exchange).await {
                    Ok(Ok(byte)) => byte.to_string(),
                    Ok(Err(error)) => error.kind().to_string(),
                    Err(_) => "no response".to_owned(),
                };
                log.lock().unwrap().push(format!("{:?} {response}", start.elapsed()));
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    })
}

fn conversation(kind: EngineKind, seed: u64) -> Vec<String> {
    isolate(seed, move || {
        let log = Log::default();
        let mut engine = kind.engine(seed);
        let server = engine.add_host("server", echo());
        let client = engine.add_host("client", client(log.clone()));
        run_until(&mut *engine, Duration::from_secs(5));
        engine.partition(server, client);
        run_until(&mut *engine, Duration::from_secs(20));
        engine.repair(server, client);
        run_until(&mut *engine, Duration::from_secs(30));
        engine.kill(server);
        run_until(&mut *engine, Duration::from_secs(40));
        engine.restart(server);
        run_until(&mut *engine, Duration::from_secs(60));
        drop(engine);
        Arc::try_unwrap(log).map(|log| log.into_inner().unwrap()).unwrap_or_else(|log| log.lock().unwrap().clone())
    })
}

#[test]
fn a_conversation_survives_partition_and_restart_on_both_engines() {
    for kind in EngineKind::ALL {
        let log = conversation(kind, 1);
        let responses = log.iter().filter(|line| line.ends_with(" 42")).count();
        assert!(responses > 20, "{kind:?}: {log:#?}");
        assert!(responses < log.len(), "{kind:?}: no fault had an effect: {log:#?}");
        assert!(log.last().unwrap().ends_with(" 42"), "{kind:?}: {log:#?}");
    }
}

#[test]
fn a_seed_decides_everything_and_another_seed_differs() {
    for kind in EngineKind::ALL {
        assert_eq!(conversation(kind, 7), conversation(kind, 7), "{kind:?}");
    }
    assert_ne!(conversation(EngineKind::Fast, 7), conversation(EngineKind::Fast, 8));
}

#[test]
fn timers_are_exact() {
    // The fast engine reads deadlines off tokio's futex waits; if tokio parks in another way, this test fails.
    let fired = isolate(3, || {
        let log = Log::default();
        let shared = log.clone();
        let mut engine = EngineKind::Fast.engine(3);
        run_until(&mut *engine, Duration::from_micros(1_234_567));
        engine.add_host(
            "timer",
            program(move |_| {
                let shared = shared.clone();
                async move {
                    let start = Instant::now();
                    for millis in [1, 10, 999, 60_000, 86_400_000] {
                        tokio::time::sleep(Duration::from_millis(millis)).await;
                        shared.lock().unwrap().push(format!("{}", start.elapsed().as_millis()));
                    }
                }
            }),
        );
        run_until(&mut *engine, Duration::from_secs(100_000));
        log.lock().unwrap().clone()
    });
    assert_eq!(fired, ["1", "11", "1010", "61010", "86461010"]);
}

#[test]
fn a_connect_into_a_partition_gives_up_as_linux_does() {
    let waited = isolate(5, || {
        let log = Log::default();
        let shared = log.clone();
        let mut engine = EngineKind::Fast.engine(5);
        let server = engine.add_host("server", echo());
        let client = engine.add_host(
            "client",
            program(move |port| {
                let shared = shared.clone();
                async move {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    let start = Instant::now();
                    let error = port.connect("server", 7, None).await.err().unwrap();
                    shared.lock().unwrap().push(format!("{:?} after {} s", error.kind(), start.elapsed().as_secs()));
                }
            }),
        );
        engine.partition(server, client);
        run_until(&mut *engine, Duration::from_secs(200));
        log.lock().unwrap().clone()
    });
    assert_eq!(waited, ["TimedOut after 127 s"]);
}

#[test]
fn an_open_stream_stalls_in_a_partition_and_resumes() {
    let response = isolate(6, || {
        let log = Log::default();
        let shared = log.clone();
        let mut engine = EngineKind::Fast.engine(6);
        let server = engine.add_host("server", echo());
        let client = engine.add_host(
            "client",
            program(move |port| {
                let shared = shared.clone();
                async move {
                    let mut stream = port.connect("server", 7, None).await.unwrap();
                    tokio::time::sleep(Duration::from_secs(2)).await;
                    stream.write_u8(1).await.unwrap();
                    let byte = stream.read_u8().await.unwrap();
                    shared.lock().unwrap().push(byte.to_string());
                }
            }),
        );
        run_until(&mut *engine, Duration::from_secs(1));
        engine.partition(server, client);
        run_until(&mut *engine, Duration::from_secs(60));
        assert!(log.lock().unwrap().is_empty(), "the stream crossed a partition");
        engine.repair(server, client);
        run_until(&mut *engine, Duration::from_secs(200));
        log.lock().unwrap().clone()
    });
    assert_eq!(response, ["2"]);
}

#[test]
fn latency_applies_to_both_directions() {
    for kind in EngineKind::ALL {
        let log = isolate(9, move || {
            let log = Log::default();
            let mut engine = kind.engine(9);
            let server = engine.add_host("server", echo());
            let client = engine.add_host("client", client(log.clone()));
            let slow = Latency { min: 250_000_000, max: 250_000_000 };
            engine.set_latency(server, client, slow);
            run_until(&mut *engine, Duration::from_secs(3));
            log.lock().unwrap().clone()
        });
        // At least a request and its response; a handshake in the fast engine; one more tick in turmoil.
        let first = log.first().unwrap().split_once(' ').unwrap().0;
        let millis = match first.strip_suffix("ms") {
            Some(millis) => millis.parse::<f64>().unwrap(),
            None => first.trim_end_matches('s').parse::<f64>().unwrap() * 1000.0,
        };
        assert!((500.0..1100.0).contains(&millis), "{kind:?}: {log:?}");
    }
}

#[test]
fn a_panic_in_a_task_of_a_host_is_returned_with_its_host_and_message() {
    for kind in EngineKind::ALL {
        let panic = isolate(4, move || {
            let mut engine = kind.engine(4);
            engine.add_host("server", echo());
            engine.add_host(
                "fragile",
                program(|_| async {
                    tokio::time::sleep(Duration::from_secs(2)).await;
                    #[expect(clippy::disallowed_methods, reason = "a panic in a detached task must be noticed too")]
                    drop(tokio::spawn(async { panic!("out of {}", "luck") }));
                    std::future::pending::<()>().await;
                }),
            );
            let end = Duration::from_secs(10);
            let mut steps = std::iter::repeat_with(|| (engine.step(end), engine.now()));
            steps.find_map(|(stepped, now)| if now >= end { Some(None) } else { stepped.err().map(Some) }).flatten()
        });
        let panic = panic.unwrap_or_else(|| panic!("{kind:?}: no panic was returned"));
        assert_eq!((panic.host.as_str(), panic.message.as_str()), ("fragile", "out of luck"), "{kind:?}");
        assert!(panic.location.contains("engine.rs"), "{kind:?}: {panic}");
    }
}
