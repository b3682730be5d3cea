//! Both arms: time, network, kill and restart, and the same run twice.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use sindri_world::engine::{Arm, Engine, Latency, Port, Program};
use sindri_world::isolate;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

type Log = Arc<Mutex<Vec<String>>>;

fn run_until(engine: &mut dyn Engine, end: Duration) {
    while engine.now() < end {
        engine.step(end);
    }
}

fn program<F, R>(body: F) -> Program
where
    F: Fn(Port) -> R + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    Box::new(move |port| Box::pin(body(port)))
}

/// Answers each byte with the next one.
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

/// Asks once a second over fresh connections and notes what came back, and when.
fn asker(log: Log) -> Program {
    program(move |port| {
        let log = log.clone();
        async move {
            let start = Instant::now();
            loop {
                let asked = async {
                    let mut stream = port.connect("server", 7).await?;
                    stream.write_u8(41).await?;
                    stream.read_u8().await
                };
                let answer = match tokio::time::timeout(Duration::from_secs(5), asked).await {
                    Ok(Ok(byte)) => byte.to_string(),
                    Ok(Err(error)) => error.kind().to_string(),
                    Err(_) => "no answer".to_owned(),
                };
                log.lock().unwrap().push(format!("{:?} {answer}", start.elapsed()));
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    })
}

fn conversation(arm: Arm, seed: u64) -> Vec<String> {
    isolate(seed, move || {
        let log = Log::default();
        let mut engine = arm.engine(seed);
        let server = engine.add_host("server", echo());
        let client = engine.add_host("client", asker(log.clone()));
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
fn a_conversation_survives_partition_and_restart_on_both_arms() {
    for arm in Arm::ALL {
        let log = conversation(arm, 1);
        let answered = log.iter().filter(|line| line.ends_with(" 42")).count();
        assert!(answered > 20, "{arm:?}: {log:#?}");
        assert!(answered < log.len(), "{arm:?}: no fault was felt: {log:#?}");
        assert!(log.last().unwrap().ends_with(" 42"), "{arm:?}: {log:#?}");
    }
}

#[test]
fn a_seed_decides_everything_and_another_seed_differs() {
    for arm in Arm::ALL {
        assert_eq!(conversation(arm, 7), conversation(arm, 7), "{arm:?}");
    }
    assert_ne!(conversation(Arm::Fast, 7), conversation(Arm::Fast, 8));
}

#[test]
fn timers_are_exact() {
    // The fast arm reads deadlines off tokio's futex waits; if tokio parks in another way, this is what breaks.
    let fired = isolate(3, || {
        let log = Log::default();
        let noted = log.clone();
        let mut engine = Arm::Fast.engine(3);
        run_until(&mut *engine, Duration::from_micros(1_234_567));
        engine.add_host(
            "timer",
            program(move |_| {
                let noted = noted.clone();
                async move {
                    let start = Instant::now();
                    for millis in [1, 10, 999, 60_000, 86_400_000] {
                        tokio::time::sleep(Duration::from_millis(millis)).await;
                        noted.lock().unwrap().push(format!("{}", start.elapsed().as_millis()));
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
        let noted = log.clone();
        let mut engine = Arm::Fast.engine(5);
        let server = engine.add_host("server", echo());
        let client = engine.add_host(
            "client",
            program(move |port| {
                let noted = noted.clone();
                async move {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    let start = Instant::now();
                    let error = port.connect("server", 7).await.err().unwrap();
                    noted.lock().unwrap().push(format!("{:?} after {} s", error.kind(), start.elapsed().as_secs()));
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
    let answer = isolate(6, || {
        let log = Log::default();
        let noted = log.clone();
        let mut engine = Arm::Fast.engine(6);
        let server = engine.add_host("server", echo());
        let client = engine.add_host(
            "client",
            program(move |port| {
                let noted = noted.clone();
                async move {
                    let mut stream = port.connect("server", 7).await.unwrap();
                    tokio::time::sleep(Duration::from_secs(2)).await;
                    stream.write_u8(1).await.unwrap();
                    let byte = stream.read_u8().await.unwrap();
                    noted.lock().unwrap().push(byte.to_string());
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
    assert_eq!(answer, ["2"]);
}

#[test]
fn latency_is_felt_in_both_directions() {
    for arm in Arm::ALL {
        let log = isolate(9, move || {
            let log = Log::default();
            let mut engine = arm.engine(9);
            let server = engine.add_host("server", echo());
            let client = engine.add_host("client", asker(log.clone()));
            let slow = Latency { min: 250_000_000, max: 250_000_000 };
            engine.set_latency(server, client, slow);
            run_until(&mut *engine, Duration::from_secs(3));
            log.lock().unwrap().clone()
        });
        // A question and its answer at the least; the handshake where an arm has one; a tick more where an arm ticks.
        let first = log.first().unwrap().split_once(' ').unwrap().0;
        let millis = match first.strip_suffix("ms") {
            Some(millis) => millis.parse::<f64>().unwrap(),
            None => first.trim_end_matches('s').parse::<f64>().unwrap() * 1000.0,
        };
        assert!((500.0..1100.0).contains(&millis), "{arm:?}: {log:?}");
    }
}
