//! Jobs that share a block device, on a real loop device.

#![forbid(unsafe_code)]

#[path = "../../../crypt-core/tests/loop_device/mod.rs"]
mod loop_device;

use crypt_core::device::guard::Guard;
use loop_device::loop_device;

use crate::runner::{place, run, stderr, succeed};

/// The device is asked for alone once, not by each of them.
#[test]
fn several_jobs_write_one_block_device() {
    let device = match loop_device(16 << 20) {
        Ok(device) => device,
        Err(why) => return println!("skipped: {why}"),
    };
    let path = device.path().display();
    let global = format!("[global]\nfilename={path}\nbs=4k\nsize=4m\n");
    let text = format!(
        "{global}[a]\nrw=randwrite\nnumjobs=2\n[b]\nrw=write\noffset=4m\ndirect=1\n[c]\nrw=read\n\
         [d]\nstonewall\nrw=randrw\nioengine=psync\n"
    );
    let place = place();
    let refused = run(&place, &text, "");
    assert_eq!(refused.status.code(), Some(2));
    let identity = Guard::default().identity(device.path()).unwrap();
    let name = identity.name();
    succeed(&place, &text, &format!("--destroy-data-on {name}"));
    // Somebody who has it alone keeps it.
    let held = crypt_core::device::claim::Claim::take(device.path()).unwrap();
    let output = run(&place, &text, &format!("--destroy-data-on {name}"));
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("in use"), "{}", stderr(&output));
    drop(held);
}
