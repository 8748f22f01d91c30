//! Loop devices for tests that need a block device.

#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A loop device over a temporary file, detached when dropped.
pub(crate) struct LoopDevice {
    path: PathBuf,
    _dir: TempDir,
}

/// Attaches a zeroed loop device, or says why that can't be had.
pub(crate) fn loop_device(size_bytes: u64) -> Result<LoopDevice, String> {
    if !rustix::process::geteuid().is_root() {
        return Err("loop devices need root".to_owned());
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("loop.img");
    fs::File::create_new(&file)
        .unwrap()
        .set_len(size_bytes)
        .unwrap();
    let output = Command::new("losetup")
        .args(["--find", "--show", "--partscan"])
        .arg(&file)
        .output();
    let output = output.map_err(|error| format!("losetup: {error}"))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        return Err(format!("losetup: {}", message.trim()));
    }
    let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    Ok(LoopDevice { path, _dir: dir })
}

impl LoopDevice {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _status = Command::new("losetup")
            .arg("--detach")
            .arg(&self.path)
            .status();
    }
}
