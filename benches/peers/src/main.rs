//! AES-256-XTS of `crypt-core` beside `xts-mode`, OpenSSL and AWS-LC: same buffers, same run,
//! interleaved, with the ratios printed.
//!
//! `crypt-peers` compares what each picks on this CPU, then runs itself again with the C libraries
//! held down by `OPENSSL_ia32cap` to the instruction sets of our lesser kernels: to VAES with AVX2, and
//! to AES-NI. `crypt-peers BACKEND` compares one backend only.
//! The subjects take turns. The figure of a turn is its best window, shorter than a time slice of the
//! scheduler: what the code can do, not what else the machine did. Tables show medians over the turns, and the
//! medians of the ratios within turns.

#![forbid(unsafe_code)]

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use crypt_core::buffer::{Area, SlotBuffer};
use crypt_core::cipher::Backend;
use crypt_core::error::Result;
use crypt_core::units::SectorSize;

use crypt_peers::subject::{self, Direction, Subject};

const TURN: Duration = Duration::from_millis(4);
const TURNS: usize = 31;
const WINDOW: Duration = Duration::from_micros(100);
const WINDOW_BYTES: usize = 64 << 10;
/// Where [`subject::all`] puts whom.
const LIMIT: usize = 0;
const OURS: usize = 1;
const PEERS: std::ops::Range<usize> = 2..5;

const REQUESTS: [usize; 3] = [4 << 10, 64 << 10, 1 << 20];

/// What `OPENSSL_ia32cap` hides from both C libraries, so that they have the instructions of a backend
/// and no more: bits of CPUID leaf 7, EBX in the low half and ECX in the high one.
const RESTRICTIONS: [(&str, &str); 2] = [
    // AVX-512: F, DQ, IFMA, CD, BW, VL; VBMI, VBMI2, VNNI, BITALG, VPOPCNTDQ.
    ("vaes256", ":~0x00005842d0230000"),
    // All of that, AVX2, VAES and VPCLMULQDQ.
    ("aesni", ":~0x00005e42d0230020"),
];

fn main() -> ExitCode {
    let outcome = match std::env::args().nth(1) {
        Some(name) => name.parse().and_then(compare),
        None => compare_all(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("crypt-peers: {error}");
            ExitCode::FAILURE
        }
    }
}

fn compare_all() -> Result<()> {
    let fastest = Backend::choose(None)?;
    println!("What each library picks on this CPU:");
    compare(fastest)?;
    for backend in Backend::available() {
        let restriction = RESTRICTIONS
            .iter()
            .find(|(name, _)| *name == backend.name());
        if let Some((_, hidden)) = restriction {
            println!("\n{backend} beside C libraries with no more instructions than that:");
            run_again(backend, hidden);
        }
    }
    Ok(())
}

/// The C libraries read the variable when they are loaded, so it takes another process.
fn run_again(backend: Backend, hidden: &str) {
    let status = std::env::current_exe().and_then(|program| {
        Command::new(program)
            .arg(backend.name())
            .env("OPENSSL_ia32cap", hidden)
            .status()
    });
    if !status.as_ref().is_ok_and(std::process::ExitStatus::success) {
        eprintln!("crypt-peers: the run with {backend} failed: {status:?}");
    }
}

fn compare(backend: Backend) -> Result<()> {
    println!(
        "{:>7} {:>8} {:>8}  {:>6} {:>6}  {:>14} {:>14} {:>14}  (GB/s, ours / theirs)",
        "sector", "request", "", "limit", "ours", "xts-mode", "openssl", "aws-lc"
    );
    for sector_size in [SectorSize::B4096, SectorSize::B512] {
        for request in REQUESTS {
            let mut subjects = subject::all(backend, sector_size)?;
            let mut buffer = SlotBuffer::allocate(1, request)?.remove(0);
            let buf = &mut buffer.area_mut(Area::Data)[..request];
            check_agreement(&mut subjects, buf);
            for direction in [Direction::Encrypt, Direction::Decrypt] {
                let turns = measure(&mut subjects, direction, buf);
                print_row(sector_size, request, direction, &turns);
            }
        }
    }
    Ok(())
}

/// The subjects are the limit, ours, and the peers, in this order.
fn print_row(sector_size: SectorSize, request: usize, direction: Direction, turns: &[Vec<f64>]) {
    let rate = |subject: usize| median(turns.iter().map(|rates| rates[subject]));
    let ratio = |subject: usize| median(turns.iter().map(|rates| rates[OURS] / rates[subject]));
    print!(
        "{:>7} {request:>8} {:>8}  {:>6.2} {:>6.2} ",
        sector_size.bytes(),
        direction.name(),
        rate(LIMIT),
        rate(OURS)
    );
    for peer in PEERS {
        print!(" {:>6.2} ({:>5.2})", rate(peer), ratio(peer));
    }
    println!("  {:.2} of the limit", ratio(LIMIT));
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// For each turn, the rate of each subject in GB/s.
fn measure(
    subjects: &mut [Box<dyn Subject>],
    direction: Direction,
    buf: &mut [u8],
) -> Vec<Vec<f64>> {
    let mut turn = || -> Vec<f64> {
        let rates = subjects.iter_mut();
        rates
            .map(|subject| best_window(&mut **subject, direction, buf))
            .collect()
    };
    turn();
    (0..TURNS).map(|_| turn()).collect()
}

/// The best of a turn's windows, each shorter than a time slice of the scheduler.
fn best_window(subject: &mut dyn Subject, direction: Direction, buf: &mut [u8]) -> f64 {
    let mut sector = 0;
    let mut best = 0.0_f64;
    let turn = Instant::now();
    while turn.elapsed() < TURN {
        let window = Instant::now();
        let mut bytes = 0;
        while window.elapsed() < WINDOW {
            for _ in 0..WINDOW_BYTES.div_ceil(buf.len()) {
                subject.run(direction, sector, buf);
                sector += buf.len() as u64 / 512;
                bytes += buf.len();
            }
        }
        best = best.max(bytes as f64 / window.elapsed().as_secs_f64() / 1e9);
    }
    best
}

/// # Panics
/// Where two libraries disagree: a comparison would mean nothing.
fn check_agreement(subjects: &mut [Box<dyn Subject>], buf: &mut [u8]) {
    let plaintext: Vec<u8> = (0..buf.len()).map(|i| (i * 7 + i / 256) as u8).collect();
    let mut expected: Option<Vec<u8>> = None;
    for subject in subjects.iter_mut().skip(1) {
        buf.copy_from_slice(&plaintext);
        subject.run(Direction::Encrypt, 64, buf);
        let first = expected.get_or_insert_with(|| buf.to_vec());
        assert!(buf == first, "{} encrypts differently", subject.name());
        subject.run(Direction::Decrypt, 64, buf);
        assert!(buf == plaintext, "{} decrypts differently", subject.name());
    }
}
