//! What an issuer does when nothing has ended: helps the workers, looks for news, or sleeps.

#![forbid(unsafe_code)]

use super::{Issuer, Phase};
use crate::simulate::pool::Part;
use crate::simulate::scene::{Scene, Turn};

/// A spin that only news ends.
const FOR_EVER_NS: f64 = 1e15;

impl Issuer {
    pub(super) fn has_news(&self, scene: &Scene<'_>) -> bool {
        !scene.mail[self.actor].is_empty() || !scene.reaped[self.actor].is_empty()
    }

    /// Nothing has ended: helps the workers, looks for news, or sleeps.
    pub(super) fn idle(&mut self, scene: &mut Scene<'_>) -> Turn {
        if self.has_news(scene) {
            self.phase = Phase::Gather;
            return Turn::Busy(0.0);
        }
        if self.load.polled {
            self.phase = Phase::Gather;
            return Turn::Spin(FOR_EVER_NS);
        }
        let (at_device, at_workers) = self.pipeline.outstanding();
        // Another issuer that is bound to the same CPU has work of its own for it.
        let crowded = scene.is_crowded(self.actor);
        if at_workers > 0
            && scene.rules.assist
            && !crowded
            && let Some(part) = scene.pool.take_any()
        {
            return self.assist(part, scene);
        }
        if at_device == 0 && at_workers > 0 && !crowded && scene.may_spin(self.actor) {
            self.rested = true;
            self.phase = Phase::Spun;
            return Turn::Spin(scene.machine.hand_off.spin_ns);
        }
        self.sleep(scene)
    }

    pub(super) fn assist(&mut self, part: Part, scene: &mut Scene<'_>) -> Turn {
        self.rested = true;
        scene.begin(&part);
        self.phase = Phase::Assisted {
            part,
            start_ns: scene.now_ns,
        };
        Turn::Busy(scene.part_ns(self.actor, &part))
    }

    pub(super) fn sleep(&mut self, scene: &mut Scene<'_>) -> Turn {
        self.rested = true;
        scene.outsider_sleeps(self.actor);
        if scene.pool.has_queued() {
            scene.wake_for_queued();
        }
        self.phase = Phase::Woken;
        Turn::Sleep
    }
}
