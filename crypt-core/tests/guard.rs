//! The guard on real loop devices: what is mounted or carries data is not written to.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    reason = "a test may fail by panic, its helpers too"
)]

mod loop_device;

use std::path::Path;
use std::process::{Command, Stdio};

use crypt_core::device::file::{FileDevice, FileOptions};
use crypt_core::device::guard::{Guard, check_destroy};
use crypt_core::error::ErrorKind;
use loop_device::{LoopDevice, loop_device};

/// A loop device, or `None` after saying why there is none.
fn device() -> Option<LoopDevice> {
    let device = loop_device(64 << 20);
    device.map_err(|why| println!("skipped: {why}")).ok()
}

/// Runs a tool; `false` after saying so where it is missing.
fn run(tool: &str, arguments: &[&str]) -> bool {
    let command = Command::new(tool)
        .args(arguments)
        .stdout(Stdio::null())
        .status();
    match command {
        Ok(status) => {
            assert!(status.success(), "{tool} failed");
            true
        }
        Err(error) => {
            println!("skipped: {tool}: {error}");
            false
        }
    }
}

#[track_caller]
fn refusal(path: &Path, permission: Option<&str>) -> String {
    let error = check_destroy(path, permission).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    error.to_string()
}

#[test]
fn an_empty_device_needs_a_permission_for_it() {
    let Some(device) = device() else { return };
    let path = device.path();
    let identity = Guard::default().identity(path).unwrap();
    let name = identity.name();
    assert!(name.starts_with("loop:"), "{name}");
    let message = refusal(path, None);
    assert!(
        message.contains(&format!("--destroy-data-on '{name}'")),
        "{message}"
    );
    let message = refusal(path, Some("serial:OTHER"));
    assert!(
        message.contains("'serial:OTHER'") && message.contains(name),
        "{message}"
    );
    let message = refusal(path, Some(&path.display().to_string()));
    assert!(message.contains(name), "a path is no identity: {message}");
    check_destroy(path, Some(name)).unwrap();
}

#[test]
fn a_file_system_is_refused_until_it_is_named() {
    let Some(device) = device() else { return };
    let path = device.path();
    if !run("mkfs.ext4", &["-q", "-F", path.to_str().unwrap()]) {
        return;
    }
    let identity = Guard::default().identity(path).unwrap();
    let message = refusal(path, Some(identity.name()));
    assert!(
        message.contains("signature of ext at byte 1080"),
        "{message}"
    );
    assert!(message.contains("wipefs"), "{message}");
    let permission = format!("{}+ext", identity.name());
    assert!(message.contains(&permission), "{message}");
    check_destroy(path, Some(&permission)).unwrap();
    if run("wipefs", &["-q", "--all", path.to_str().unwrap()]) {
        check_destroy(path, Some(identity.name())).unwrap();
    }
}

#[test]
fn a_mounted_file_system_is_refused_whatever_is_permitted() {
    let Some(device) = device() else { return };
    let path = device.path();
    if !run("mkfs.ext4", &["-q", "-F", path.to_str().unwrap()]) {
        return;
    }
    let point = tempfile::tempdir().unwrap();
    let point_text = point.path().to_str().unwrap();
    if !run("mount", &[path.to_str().unwrap(), point_text]) {
        return;
    }
    let permission = format!("{}+ext", Guard::default().identity(path).unwrap().name());
    let checked = check_destroy(path, Some(&permission));
    let opened = FileDevice::open(path, FileOptions::default());
    assert!(run("umount", &[point_text]));
    let message = checked.unwrap_err().to_string();
    assert!(
        message.contains(&format!("mounted at {point_text}")),
        "{message}"
    );
    // The kernel refuses, too, where nobody asks the guard.
    assert_eq!(opened.unwrap_err().kind(), ErrorKind::Refused);
    check_destroy(path, Some(&permission)).unwrap();
}

#[test]
fn partitions_are_looked_at_and_count_for_their_disk() {
    let Some(device) = device() else { return };
    let path = device.path();
    let mut sfdisk = Command::new("sfdisk");
    sfdisk
        .arg("--quiet")
        .arg(path)
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    let Ok(mut child) = sfdisk.spawn() else {
        println!("skipped: sfdisk is missing");
        return;
    };
    use std::io::Write;
    let mut script = child.stdin.take().unwrap();
    script.write_all(b"label: gpt\nsize=40M\n").unwrap();
    drop(script);
    assert!(child.wait().unwrap().success());
    let partition = format!("{}p1", path.display());
    let partition = Path::new(&partition);
    if !partition.exists() {
        // A kernel that knows no partition tables can be told.
        let _without = Command::new("partx").arg("--add").arg(path).status();
    }
    if !partition.exists() {
        println!("skipped: no node for {}", partition.display());
        return;
    }
    if !run("mkfs.ext4", &["-q", "-F", partition.to_str().unwrap()]) {
        return;
    }
    let guard = Guard::default();
    let name = guard.identity(path).unwrap().name().to_owned();
    let message = refusal(path, Some(&name));
    assert!(
        message.contains("gpt") && message.contains("+gpt+mbr+ext"),
        "{message}"
    );
    check_destroy(path, Some(&format!("{name}+gpt+mbr+ext"))).unwrap();
    assert_eq!(
        guard.identity(partition).unwrap().name(),
        format!("{name}-part1")
    );
    let message = refusal(partition, Some(&format!("{name}+ext")));
    assert!(
        message.contains("-part1"),
        "the disk's permission is not the partition's: {message}"
    );
    let point = tempfile::tempdir().unwrap();
    let point_text = point.path().to_str().unwrap();
    if run("mount", &[partition.to_str().unwrap(), point_text]) {
        let checked = check_destroy(path, Some(&format!("{name}+gpt+mbr+ext")));
        assert!(run("umount", &[point_text]));
        let message = checked.unwrap_err().to_string();
        assert!(message.contains("p1 is mounted"), "{message}");
    }
}

#[test]
fn a_device_under_another_one_is_refused_whatever_is_permitted() {
    let Some(device) = device() else { return };
    let path = device.path();
    let name = Guard::default().identity(path).unwrap().name().to_owned();
    check_destroy(path, Some(&name)).unwrap();
    let top = format!("crypt-core-test-{}", std::process::id());
    let table = format!("0 1024 linear {} 0", path.display());
    let create = Command::new("dmsetup")
        .args(["create", &top, "--table", &table])
        .output();
    if !create.is_ok_and(|output| output.status.success()) {
        println!("skipped: no device mapper");
        return;
    }
    let checked = check_destroy(path, Some(&name));
    let opened = FileDevice::open(path, FileOptions::default());
    assert!(run("dmsetup", &["remove", &top]));
    let message = checked.unwrap_err().to_string();
    assert!(
        message.contains(&top) && message.contains("is built on"),
        "{message}"
    );
    assert_eq!(opened.unwrap_err().kind(), ErrorKind::Refused);
}

#[test]
fn swap_is_refused_whatever_is_permitted() {
    if std::env::var_os("VM_RUN").is_none() {
        println!("skipped: swaps on a throw-away machine only, where VM_RUN is set");
        return;
    }
    let Some(device) = device() else { return };
    let path = device.path().to_str().unwrap();
    if !run("mkswap", &[path]) || !run("swapon", &[path]) {
        return;
    }
    let name = Guard::default()
        .identity(device.path())
        .unwrap()
        .name()
        .to_owned();
    let message = refusal(device.path(), Some(&format!("{name}+swap")));
    assert!(run("swapoff", &[path]));
    assert!(message.contains("is swap"), "{message}");
    check_destroy(device.path(), Some(&format!("{name}+swap"))).unwrap();
}

#[test]
fn a_file_behind_a_loop_device_is_in_use() {
    let Some(device) = device() else { return };
    let name = Guard::default()
        .identity(device.path())
        .unwrap()
        .name()
        .to_owned();
    let file = name.strip_prefix("loop:").unwrap();
    let message = refusal(Path::new(file), None);
    assert!(
        message.contains(device.path().to_str().unwrap()),
        "{message}"
    );
}

/// Each format's own tool writes what the table is to find.
#[test]
fn the_marks_of_real_tools_are_found() {
    let tools: [(&str, &[&str], &str); 8] = [
        ("mkswap", &[], "swap"),
        ("mkfs.xfs", &["-q", "-f"], "xfs"),
        ("mkfs.btrfs", &["-q", "-f"], "btrfs"),
        ("mkfs.vfat", &[], "vfat"),
        ("mkfs.ntfs", &["-q", "-F", "-f"], "ntfs"),
        ("mkfs.f2fs", &["-q", "-f"], "f2fs"),
        ("pvcreate", &["-q", "-y"], "lvm"),
        ("mkfs.ext2", &["-q", "-F"], "ext"),
    ];
    for (tool, arguments, expected) in tools {
        let Ok(device) = loop_device(512 << 20) else {
            println!("skipped: no loop device");
            return;
        };
        let path = device.path().to_str().unwrap();
        if Command::new(tool).arg("--help").output().is_err() {
            println!("{tool}: skipped: not installed");
            continue;
        }
        let mut arguments = arguments.to_vec();
        arguments.push(path);
        assert!(run(tool, &arguments));
        let message = refusal(device.path(), None);
        assert!(
            message.contains(&format!("a signature of {expected} ")),
            "{tool}: {message}"
        );
    }
    luks();
}

fn luks() {
    let Some(device) = device() else { return };
    let path = device.path().to_str().unwrap();
    let format = ["--batch-mode", "--type", "luks2", "--pbkdf", "pbkdf2"];
    let quick = [
        "--pbkdf-force-iterations",
        "1000",
        "--key-file",
        "/proc/version",
    ];
    let mut arguments = vec!["luksFormat"];
    arguments.extend(format.iter().chain(&quick));
    arguments.push(path);
    if run("cryptsetup", &arguments) {
        assert!(refusal(device.path(), None).contains("a signature of luks at byte 0"));
    }
}
