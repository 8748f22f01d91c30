//! The guard on invented trees of `/proc`, `/sys` and `/dev`; real devices are in `tests/guard.rs`.

#![forbid(unsafe_code)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use tempfile::TempDir;

use super::*;

/// A disk 8:0 with two partitions, the second of which is under a device-mapper device.
struct Machine {
    root: TempDir,
}

impl Machine {
    fn new() -> Self {
        let machine = Self {
            root: tempfile::tempdir().unwrap(),
        };
        machine.device("sda", "8:0");
        machine.device("sda/sda1", "8:1");
        machine.device("sda/sda2", "8:2");
        machine.device("dm-0", "253:0");
        machine.file("sys/devices/sda/sda1/partition", "1");
        machine.file("sys/devices/sda/sda2/partition", "2");
        machine.file("sys/devices/dm-0/dm/name", "home");
        machine.file("sys/devices/sda/device/model", "Seagull 3000");
        machine.file("proc/self/mountinfo", "");
        machine.file("proc/swaps", "Filename Type Size Used Priority\n");
        machine
    }

    fn device(&self, path: &str, number: &str) {
        let dir = self.path("sys/devices").join(path);
        fs::create_dir_all(dir.join("holders")).unwrap();
        fs::write(dir.join("dev"), number).unwrap();
        for links in ["sys/dev/block", "sys/class/block"] {
            fs::create_dir_all(self.path(links)).unwrap();
        }
        symlink(&dir, self.path("sys/dev/block").join(number)).unwrap();
        let name = dir.file_name().unwrap();
        symlink(&dir, self.path("sys/class/block").join(name)).unwrap();
    }

    fn hold_second_partition(&self) {
        let holder = self.path("sys/devices/sda/sda2/holders/dm-0");
        symlink(self.path("sys/devices/dm-0"), holder).unwrap();
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    fn guard(&self) -> Guard {
        Guard::with_roots(self.path("proc"), self.path("sys"), self.path("dev"))
    }

    fn use_of(&self, minor: u32) -> Option<String> {
        self.guard().use_of(sd(minor)).unwrap()
    }
}

fn sd(minor: u32) -> DeviceNumber {
    DeviceNumber { major: 8, minor }
}

fn mount(number: &str, point: &str, source: &str) -> String {
    format!("36 25 {number} / {point} rw,relatime shared:1 - ext4 {source} rw\n")
}

#[test]
fn an_idle_disk_has_no_use() {
    let machine = Machine::new();
    assert_eq!(machine.use_of(0), None);
    assert_eq!(machine.use_of(2), None);
    // A device that /sys doesn't know is judged by its own number alone.
    assert_eq!(machine.use_of(77), None);
}

#[test]
fn a_mount_of_any_relative_is_found() {
    let machine = Machine::new();
    machine.hold_second_partition();
    let cases = [
        ("8:0", 0, true),
        ("8:1", 0, true),
        ("8:1", 1, true),
        ("8:0", 1, true),
        ("253:0", 0, true),
        ("253:0", 2, true),
        ("8:16", 0, false),
    ];
    for (mounted, asked, expected) in cases {
        machine.file(
            "proc/self/mountinfo",
            &mount(mounted, r"/mnt/my\040disk", "/dev/x"),
        );
        let found = machine.use_of(asked);
        let found = found.is_some_and(|found| found.contains("mounted at /mnt/my disk"));
        assert_eq!(found, expected, "{mounted} is mounted, 8:{asked} asked for");
    }
    machine.file("proc/self/mountinfo", &mount("8:1", "/", "/dev/sda1"));
    assert!(
        !machine.use_of(2).unwrap().contains("mounted"),
        "a sibling is no relative"
    );
}

#[test]
fn a_file_system_with_a_number_of_its_own_is_found_by_its_source() {
    let machine = Machine::new();
    machine.file("proc/self/mountinfo", &mount("0:44", "/data", "/dev/sda2"));
    assert!(machine.use_of(2).unwrap().contains("/data"));
    machine.file("proc/self/mountinfo", &mount("0:44", "/sys", "sysfs"));
    assert_eq!(machine.use_of(2), None);
}

#[test]
fn swap_is_found() {
    let machine = Machine::new();
    machine.file("proc/swaps", "Filename Type\n/dev/sda2 partition 1 0 -2\n");
    let found = machine.use_of(0).unwrap();
    assert!(
        found.contains("/dev/sda2 is swap") && found.contains("swapoff"),
        "{found}"
    );
}

#[test]
fn a_holder_that_nobody_uses_still_refuses() {
    let machine = Machine::new();
    machine.hold_second_partition();
    for asked in [0, 2] {
        let found = machine.use_of(asked).unwrap();
        assert!(
            found.contains("/dev/dm-0 (home) is built on sda2"),
            "{found}"
        );
    }
    assert_eq!(machine.use_of(1), None);
}

#[test]
fn a_list_that_cannot_be_read_is_an_error() {
    let machine = Machine::new();
    fs::remove_file(machine.path("proc/self/mountinfo")).unwrap();
    assert!(machine.guard().use_of(sd(0)).is_err());
}

#[test]
fn files_that_are_disks_or_swap_are_refused() {
    let machine = Machine::new();
    let path = fs::canonicalize(machine.root.path())
        .unwrap()
        .join("disk.img");
    fs::write(&path, "x").unwrap();
    machine.guard().check_destroy(&path, None).unwrap();
    machine.file(
        "proc/swaps",
        &format!("Filename\n{} file 1 0 -2\n", path.display()),
    );
    let error = machine.guard().check_destroy(&path, None).unwrap_err();
    assert!(error.to_string().contains("swapoff"), "{error}");
    machine.file("proc/swaps", "");
    machine.device("loop3", "7:3");
    machine.file(
        "sys/devices/loop3/loop/backing_file",
        path.to_str().unwrap(),
    );
    let error = machine.guard().check_destroy(&path, None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.to_string().contains("/dev/loop3"), "{error}");
    let folder = machine.guard().check_destroy(machine.root.path(), None);
    assert_eq!(folder.unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn a_device_is_known_by_what_it_has() {
    let machine = Machine::new();
    let name = |number: DeviceNumber| machine.guard().identify(number, 4096);
    assert_eq!(name(sd(0)).name(), "number:8:0,size:4096");
    machine.file("sys/devices/sda/device/serial", " S3 Z9 ");
    assert_eq!(name(sd(0)).name(), "serial:S3_Z9");
    assert_eq!(name(sd(1)).name(), "serial:S3_Z9-part1");
    machine.file("sys/devices/sda/device/wwid", "naa.5000");
    assert_eq!(name(sd(2)).name(), "wwid:naa.5000-part2");
    fs::create_dir_all(machine.path("dev/disk/by-id")).unwrap();
    symlink("../../sda", machine.path("dev/disk/by-id/ata-Seagull")).unwrap();
    let expected = ["wwid:naa.5000", "serial:S3_Z9", "id:ata-Seagull"];
    assert_eq!(name(sd(0)).names(), expected);
    assert!(name(sd(0)).describe().contains("Seagull 3000, 4096 bytes"));
    let mapped = DeviceNumber {
        major: 253,
        minor: 0,
    };
    assert_eq!(name(mapped).name(), "dm-name:home");
}

#[test]
fn a_permission_is_for_one_device_and_names_what_it_destroys() {
    let machine = Machine::new();
    machine.file("sys/devices/sda/device/serial", "S3");
    fs::create_dir_all(machine.path("dev/disk/by-id")).unwrap();
    symlink("../../sda", machine.path("dev/disk/by-id/ata-S3")).unwrap();
    let identity = machine.guard().identify(sd(0), 4096);
    let allowed = |permission| identity.allowed_signatures(permission);
    assert_eq!(allowed("serial:S3"), Some(vec![]));
    assert_eq!(allowed("serial:S3+gpt+ext"), Some(vec!["gpt", "ext"]));
    assert_eq!(allowed("id:ata-S3+gpt"), Some(vec!["gpt"]));
    assert_eq!(allowed("/dev/disk/by-id/ata-S3"), Some(vec![]));
    for other in [
        "",
        "serial:S",
        "serial:S34",
        "serial:S3-part1",
        "/dev/sda",
        "+gpt",
    ] {
        assert_eq!(allowed(other), None, "{other}");
    }
    let permission = identity.permission_for(["gpt", "ext", "gpt"].into_iter());
    assert_eq!(permission, "serial:S3+gpt+ext");
}

#[test]
fn signatures_are_found_where_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("disk");
    let size_bytes = 8_u64 << 20;
    let found = |path: &Path| -> Vec<&str> {
        let found = signature::scan(path, "disk", size_bytes).unwrap();
        found.iter().map(|found| found.name).collect()
    };
    let mut bytes = vec![0; size_bytes as usize];
    fs::write(&path, &bytes).unwrap();
    assert!(found(&path).is_empty(), "nothing is on an empty disk");
    let marks: [(&str, usize, &[u8]); 7] = [
        ("luks", 0x4000, b"SKUL\xba\xbe"),
        ("gpt", bytes.len() - 512, b"EFI PART"),
        ("md", bytes.len() - 8192, &[0xfc, 0x4e, 0x2b, 0xa9]),
        ("md", bytes.len() - 65536, &[0xfc, 0x4e, 0x2b, 0xa9]),
        (
            "zfs",
            (128 << 10) + 5 * 1024,
            &[0x0c, 0xb1, 0xba, 0, 0, 0, 0, 0],
        ),
        ("zfs", 128 << 10, &[0, 0, 0, 0, 0, 0xba, 0xb1, 0x0c]),
        ("btrfs", 65600, b"_BHRfS_M"),
    ];
    for (name, at, magic) in marks {
        bytes[at..at + magic.len()].copy_from_slice(magic);
        fs::write(&path, &bytes).unwrap();
        assert_eq!(found(&path), [name], "at {at}");
        bytes[at..at + magic.len()].fill(0);
    }
    // Two bytes alone are chance.
    bytes[1080..1082].copy_from_slice(&[0x53, 0xef]);
    bytes[1024 + 24] = 200;
    bytes[510..512].copy_from_slice(&[0x55, 0xaa]);
    fs::write(&path, &bytes).unwrap();
    assert!(found(&path).is_empty());
}

#[test]
fn a_tiny_device_is_scanned_without_reading_past_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("disk");
    for size_bytes in [0, 1, 511, 4096, 70_000] {
        fs::write(&path, vec![0; size_bytes]).unwrap();
        assert!(
            signature::scan(&path, "disk", size_bytes as u64)
                .unwrap()
                .is_empty()
        );
    }
}
