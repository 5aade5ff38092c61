//! What comes into the program with its dependencies: `deny.toml` says what may, and this needs no tool but cargo.

use std::{env, fs, path::PathBuf, process::Command};

fn file(name: &str) -> String {
    fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

#[test]
fn everything_that_is_locked_is_from_crates_io() {
    let lock = file("Cargo.lock");
    let packages: Vec<&str> = lock.split("[[package]]").skip(1).collect();
    assert!(packages.len() > 10);
    for package in packages {
        let value = |key: &str| {
            let start = format!("{key} = \"");
            package.lines().find_map(|line| line.strip_prefix(&start)?.strip_suffix('"'))
        };
        let name = value("name").unwrap();
        let ours = name == env!("CARGO_PKG_NAME");
        assert_eq!(value("source"), (!ours).then_some(CRATES_IO), "{name}");
        assert_eq!(value("checksum").is_some(), !ours, "{name}");
    }
    assert!(
        file("deny.toml")
            .contains(&format!("\"{}\"", CRATES_IO.strip_prefix("registry+").unwrap()))
    );
}

/// The licenses that `deny.toml` allows.
fn allowed() -> Vec<String> {
    let deny = file("deny.toml");
    let (_, list) = deny.split_once("\nallow = [").unwrap();
    let (list, _) = list.split_once(']').unwrap();
    list.split(',').map(|one| one.trim().trim_matches('"').to_owned()).collect()
}

/// Whether one may choose licenses that are `allowed`: of each part that must be, one that may be.
fn fits(license: &str, allowed: &[String]) -> bool {
    license.split(" AND ").all(|part| {
        let choices = part.trim_matches(['(', ')']);
        choices.split(" OR ").flat_map(|choice| choice.split('/')).any(|choice| {
            let choice = choice.trim();
            allowed.iter().any(|allowed| allowed == choice)
        })
    })
}

#[test]
fn every_license_is_one_that_is_allowed() {
    let allowed = allowed();
    for (license, fine) in [
        ("MIT", true),
        ("GPL-3.0-only OR MIT/Zlib", true),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
        ("MIT AND GPL-3.0-only", false),
        ("GPL-2.0-only WITH MIT", false),
        ("", false),
    ] {
        assert_eq!(fits(license, &allowed), fine, "{license}");
    }
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let rustc = Command::new("rustc").arg("-vV").output().unwrap();
    let version = String::from_utf8(rustc.stdout).unwrap();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    // Of this platform: those are here, as they were compiled just now.
    let output = Command::new(cargo)
        .args([
            "metadata",
            "--format-version=1",
            "--locked",
            "--offline",
            "--filter-platform",
            host,
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 10);
    for package in packages {
        let license = package["license"].as_str().unwrap_or_default();
        assert!(fits(license, &allowed), "{} is under '{license}'", package["id"]);
    }
}
