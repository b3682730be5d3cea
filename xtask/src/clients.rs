//! Clients that are generated from the OpenAPI document, against a running broker; and the linter of the document.
//!
//! The generators are installed from the pinned versions in `conformance/clients`, once, below Cargo's target directory.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::counts::Counts;
use crate::packages::{check, copy_sources, exists, record_installed, succeed};
use crate::process::{Run, binaries, root, target};

/// Files of the project from which everything here is made.
const SOURCES: &str = "conformance/clients";
const DOCUMENT: &str = "docs/openapi.json";
/// First words of the line in which a broker prints its address.
const READY: &str = "READY ";

/// Lints the document and runs the flow of each generated client. A client whose language is not installed is skipped.
pub fn test() -> Result<Counts, String> {
    let directory = target().join("clients");
    fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let broker = RunningBroker::start(&directory)?;
    let typescript = match exists("node") && exists("npm") {
        true => test_typescript(&directory.join("typescript"), &broker)?,
        false => Counts::skipped("TypeScript client and linter of the OpenAPI document (they need Node.js)"),
    };
    let python = match exists("python3") {
        true => test_python(&directory.join("python"), &broker)?,
        false => Counts::skipped("Python client (it needs Python 3)"),
    };
    Ok(typescript.and(&python))
}

fn test_typescript(directory: &Path, broker: &RunningBroker) -> Result<Counts, String> {
    let copied = ["package.json", "package-lock.json", "tsconfig.json", "flow.ts"];
    let is_installed = copy_sources(SOURCES, directory, &copied, "package-lock.json")?;
    if !is_installed {
        let install = ["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
        if let Err(reason) = succeed(Run::program("npm").args(install).directory(directory)) {
            println!("npm: {reason}");
            return Ok(Counts::skipped(
                "TypeScript client and linter of the OpenAPI document (npm cannot install them)",
            ));
        }
        record_installed(directory, "package-lock.json")?;
    }
    let program = |name: &str| Run::program(directory.join("node_modules/.bin").join(name)).directory(directory);
    let (document, rules) = (root().join(DOCUMENT), root().join(SOURCES).join("redocly.yaml"));
    let lint = program("redocly").arg("lint").arg(&document).arg("--config").arg(rules);
    let linted = check("the OpenAPI document has no finding of the linter", lint)?;
    succeed(program("openapi-typescript").arg(&document).args(["--output", "api.d.ts"]))?;
    succeed(program("tsc").args(["--project", "."]))?;
    let flow = Run::program("node").arg("built/flow.js").args(broker.url_and_key()).directory(directory);
    Ok(linted.and(&check("the generated TypeScript client completes its flow", flow)?))
}

fn test_python(directory: &Path, broker: &RunningBroker) -> Result<Counts, String> {
    let copied = ["requirements.txt", "python-client.yaml", "flow.py"];
    let is_installed = copy_sources(SOURCES, directory, &copied, "requirements.txt")?;
    let python = directory.join("environment/bin/python");
    if !is_installed {
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", "requirements.txt"];
        let environment = Run::program("python3").args(["-m", "venv", "environment"]).directory(directory);
        let installed =
            succeed(environment).and_then(|()| succeed(Run::program(&python).args(install).directory(directory)));
        if let Err(reason) = installed {
            println!("pip: {reason}");
            return Ok(Counts::skipped("Python client (pip cannot install its generator; Debian needs python3-venv)"));
        }
        record_installed(directory, "requirements.txt")?;
    }
    let generate = ["-m", "openapi_python_client", "generate", "--overwrite", "--fail-on-warning", "--meta", "none"];
    let generate = Run::program(&python).args(generate).args(["--config", "python-client.yaml", "--path"]);
    succeed(generate.arg(root().join(DOCUMENT)).args(["--output-path", "sindri_broker_client"]).directory(directory))?;
    let flow = Run::program(&python).arg("flow.py").args(broker.url_and_key()).directory(directory);
    check("the generated Python client completes its flow", flow)
}

/// A broker on a free port with an empty SQLite database. It ends when this is dropped.
struct RunningBroker {
    process: Child,
    url: String,
    key: String,
}

impl RunningBroker {
    fn start(directory: &Path) -> Result<Self, String> {
        let (database, key_file) = (directory.join("broker.db"), directory.join("broker.key"));
        for file in [&database, &key_file] {
            // Fails if there was no earlier run.
            let _removed = fs::remove_file(file);
        }
        let mut command = Command::new(binaries().join("sindri-broker"));
        command.args(["--listen", "127.0.0.1:0", "--log", "off", "--database-url"]);
        command.arg(format!("sqlite:{}", database.display())).arg("--admin-key-file").arg(&key_file);
        let fail = |error: std::io::Error| format!("sindri-broker: {error}");
        let mut process = command.stdout(Stdio::piped()).spawn().map_err(fail)?;
        let output = process.stdout.take();
        let mut broker = Self { process, url: String::new(), key: String::new() };
        let mut lines = output.into_iter().flat_map(|output| BufReader::new(output).lines()).map_while(Result::ok);
        let ready = lines.find_map(|line| line.strip_prefix(READY).map(str::to_owned));
        broker.url = ready.ok_or("the broker does not start")?;
        broker.key = fs::read_to_string(&key_file).map_err(fail)?.trim().to_owned();
        Ok(broker)
    }

    fn url_and_key(&self) -> [&str; 2] {
        [&self.url, &self.key]
    }
}

impl Drop for RunningBroker {
    fn drop(&mut self) {
        // Fails only if it has ended.
        let _killed = self.process.kill();
        let _reaped = self.process.wait();
    }
}
