//! What an issuer does with what has ended: tells its state machine.

#![forbid(unsafe_code)]

use crypt_core::pipeline::{Event, Token};

use super::{Issuer, Phase};
use crate::simulate::scene::{Scene, Turn};

/// Memory of the slots whose work one look at the mail takes in, as for a real queue.
const COLLECT_BYTES: u64 = 256 << 10;

impl Issuer {
    /// Tells the state machine what has ended, and asks it what to do.
    pub(super) fn gather(&mut self, scene: &mut Scene<'_>) -> Option<Turn> {
        let now_ns = scene.now_ns;
        let reaped = self.feed_reaped(scene);
        self.feed_mail(scene);
        for event in self.events.drain(..) {
            self.pipeline.feed(now_ns, &event, &mut self.actions);
        }
        let Self {
            pipeline,
            actions,
            rested,
            ..
        } = self;
        pipeline.place(
            now_ns,
            || scene.pool.load(now_ns, !std::mem::take(rested)),
            actions,
        );
        self.phase = match (self.actions.actions().is_empty(), self.done.is_empty()) {
            (false, _) => Phase::Act(0),
            (true, false) => Phase::Accounted,
            (true, true) => Phase::Idle,
        };
        (reaped > 0).then_some(Turn::Busy(reaped as f64 * scene.machine.device.reap_ns))
    }

    fn feed_reaped(&mut self, scene: &mut Scene<'_>) -> usize {
        let now_ns = scene.now_ns;
        let reaped = &mut scene.reaped[self.actor];
        for &bits in &*reaped {
            let token = Token::from_bits(bits);
            let event = Event::DeviceDone {
                token,
                result: Ok(self.at_device[token.index()]),
            };
            self.pipeline.feed(now_ns, &event, &mut self.actions);
        }
        let count = reaped.len();
        reaped.clear();
        count
    }

    fn feed_mail(&mut self, scene: &mut Scene<'_>) {
        let mut collected_bytes = 0;
        while collected_bytes < COLLECT_BYTES
            && let Some(mail) = scene.mail[self.actor].pop_front()
        {
            collected_bytes += mail.slot_bytes;
            let place = &mut self.written_on[mail.event.token().index()];
            *place = mail.written_on;
            self.pipeline
                .feed(scene.now_ns, &mail.event, &mut self.actions);
        }
    }
}
