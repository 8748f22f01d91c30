//! Colours of the heat maps: perceptually even, safe for colour-blind readers, with readable text.
//!
//! Both palettes are lines through the Oklab space (Björn Ottosson, "A perceptual color space for
//! image processing", 2020), so that equal steps of the value look equally large. The sequential
//! one rises steadily in lightness from blue to yellow: it survives greyscale print and every
//! colour-vision deficiency. The diverging one is orange - grey - blue with lightness falling evenly
//! on both sides.
//!
//! Pure: no input makes these functions panic; a position that is not a number counts as 0.

#![forbid(unsafe_code)]

use std::fmt;

/// An sRGB colour, 8 bits per channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rgb(pub u8, pub u8, pub u8);

impl Rgb {
    /// Black or white, whichever reads better on this colour (always at least 4.5 : 1).
    #[must_use]
    pub fn ink(self) -> Self {
        let (black, white) = (Self(0, 0, 0), Self(255, 255, 255));
        if self.contrast(white) >= self.contrast(black) {
            white
        } else {
            black
        }
    }

    /// Contrast ratio between two colours, 1..=21 (WCAG 2.2, "contrast ratio").
    #[must_use]
    pub fn contrast(self, other: Self) -> f64 {
        let (a, b) = (self.luminance(), other.luminance());
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    /// Relative luminance, 0..=1 (WCAG 2.2, "relative luminance").
    #[must_use]
    pub fn luminance(self) -> f64 {
        let linear = |channel: u8| {
            let c = f64::from(channel) / 255.0;
            if c <= 0.04045 {
                c / 12.92
            } else {
                ((c + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * linear(self.0) + 0.7152 * linear(self.1) + 0.0722 * linear(self.2)
    }
}

impl fmt::Display for Rgb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:02X}{:02X}{:02X}", self.0, self.1, self.2)
    }
}

/// Which colours a heat map uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Palette {
    /// Dark blue (low) to yellow (high).
    Sequential,
    /// Yellow (low) to dark blue (high): brighter stays better where lower is better.
    SequentialReversed,
    /// Orange (low), grey (middle), blue (high).
    Diverging,
    /// Blue (low), grey (middle), orange (high).
    DivergingReversed,
}

impl Palette {
    /// The colour at `position` in 0..=1; positions outside are clamped.
    #[must_use]
    pub fn color(self, position: f64) -> Rgb {
        let t = if position.is_nan() {
            0.0
        } else {
            position.clamp(0.0, 1.0)
        };
        match self {
            Self::Sequential => sequential(t),
            Self::SequentialReversed => sequential(1.0 - t),
            Self::Diverging => diverging(2.0 * t - 1.0),
            Self::DivergingReversed => diverging(1.0 - 2.0 * t),
        }
    }
}

/// The colour of the line at `index` of a picture, of middle lightness for light and dark pages. Colours
/// of neighbours are far apart; after eight they come back.
#[must_use]
pub fn line_color(index: usize) -> Rgb {
    let turn = (index * 3 % 8) as f64 / 8.0;
    from_oklch(0.63, 0.15, 255.0 + 360.0 * turn)
}

/// `t` in 0..=1. Chroma dips in the middle because sRGB holds little of it at cyan hues.
fn sequential(t: f64) -> Rgb {
    let chroma = 0.115 - 0.045 * (std::f64::consts::PI * t).sin() + 0.04 * t * t;
    from_oklch(0.30 + 0.62 * t, chroma, 285.0 - 180.0 * t)
}

/// `t` in -1..=1.
fn diverging(t: f64) -> Rgb {
    let hue_degrees = if t < 0.0 { 52.0 } else { 252.0 };
    from_oklch(0.95 - 0.42 * t.abs(), 0.13 * t.abs(), hue_degrees)
}

/// Lightness 0..=1, chroma, hue in degrees.
fn from_oklch(lightness: f64, chroma: f64, hue_degrees: f64) -> Rgb {
    let hue = hue_degrees.to_radians();
    let (a, b) = (chroma * hue.cos(), chroma * hue.sin());
    let l = (lightness + 0.396_337_777_4 * a + 0.215_803_757_3 * b).powi(3);
    let m = (lightness - 0.105_561_345_8 * a - 0.063_854_172_8 * b).powi(3);
    let s = (lightness - 0.089_484_177_5 * a - 1.291_485_548_0 * b).powi(3);
    Rgb(
        gamma(4.076_741_662_1 * l - 3.307_711_591_3 * m + 0.230_969_929_2 * s),
        gamma(-1.268_438_004_6 * l + 2.609_757_401_1 * m - 0.341_319_396_5 * s),
        gamma(-0.004_196_086_3 * l - 0.703_418_614_7 * m + 1.707_614_701_0 * s),
    )
}

/// Linear light to an 8-bit sRGB channel.
fn gamma(linear: f64) -> u8 {
    let encoded = if linear <= 0.003_130_8 {
        12.92 * linear
    } else {
        1.055 * linear.powf(1.0 / 2.4) - 0.055
    };
    (encoded.clamp(0.0, 1.0) * 255.0).round() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Palette; 4] = [
        Palette::Sequential,
        Palette::SequentialReversed,
        Palette::Diverging,
        Palette::DivergingReversed,
    ];

    fn steps() -> impl Iterator<Item = f64> {
        (0..=64).map(|i| f64::from(i) / 64.0)
    }

    /// Oklab coordinates of a colour, the inverse of `from_oklch`.
    fn oklab(color: Rgb) -> [f64; 3] {
        let linear = |c: u8| {
            let c = f64::from(c) / 255.0;
            if c <= 0.04045 {
                c / 12.92
            } else {
                ((c + 0.055) / 1.055).powf(2.4)
            }
        };
        let (r, g, b) = (linear(color.0), linear(color.1), linear(color.2));
        let l = (0.412_221_470_8 * r + 0.536_332_536_3 * g + 0.051_445_992_9 * b).cbrt();
        let m = (0.211_903_498_2 * r + 0.680_699_545_1 * g + 0.107_396_956_6 * b).cbrt();
        let s = (0.088_302_461_9 * r + 0.281_718_837_6 * g + 0.629_978_700_5 * b).cbrt();
        [
            0.210_454_255_3 * l + 0.793_617_785_0 * m - 0.004_072_046_8 * s,
            1.977_998_495_1 * l - 2.428_592_205_0 * m + 0.450_593_709_9 * s,
            0.025_904_037_1 * l + 0.782_771_766_2 * m - 0.808_675_766_0 * s,
        ]
    }

    fn distance(a: Rgb, b: Rgb) -> f64 {
        let (a, b) = (oklab(a), oklab(b));
        a.iter()
            .zip(b)
            .map(|(a, b)| (a - b).powi(2))
            .sum::<f64>()
            .sqrt()
    }

    /// What somebody without working M cones sees (Viénot, Brettel and Mollon, 1999), linear light.
    fn deuteranope(color: Rgb) -> f64 {
        let yellow = 0.293_f64.mul_add(f64::from(color.0), 0.707 * f64::from(color.1));
        yellow - f64::from(color.2)
    }

    #[test]
    fn text_on_every_colour_has_the_contrast_of_wcag_aa() {
        for palette in ALL {
            for t in steps() {
                let color = palette.color(t);
                assert!(
                    color.contrast(color.ink()) >= 4.5,
                    "{palette:?} {t} {color}"
                );
            }
        }
    }

    #[test]
    fn equal_steps_look_equally_large() {
        for palette in [Palette::Sequential, Palette::Diverging] {
            let sizes: Vec<f64> = (0..16)
                .map(|i| {
                    distance(
                        palette.color(f64::from(i) / 16.0),
                        palette.color(f64::from(i + 1) / 16.0),
                    )
                })
                .collect();
            let (least, most) = sizes.iter().fold((f64::MAX, 0.0_f64), |(least, most), &d| {
                (least.min(d), most.max(d))
            });
            assert!(most / least < 1.35, "{palette:?}: {sizes:?}");
        }
    }

    #[test]
    fn lightness_alone_orders_the_sequential_palette() {
        let luminances: Vec<f64> = steps()
            .map(|t| Palette::Sequential.color(t).luminance())
            .collect();
        assert!(luminances.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn a_red_green_blind_reader_tells_worse_from_better() {
        let (worse, better) = (Palette::Diverging.color(0.2), Palette::Diverging.color(0.8));
        assert!(deuteranope(worse) > 30.0 && deuteranope(better) < -30.0);
    }

    #[test]
    fn reversed_palettes_mirror_and_strange_positions_are_clamped() {
        assert_eq!(
            Palette::Sequential.color(0.25),
            Palette::SequentialReversed.color(0.75)
        );
        for palette in ALL {
            assert_eq!(palette.color(f64::NAN), palette.color(0.0));
            assert_eq!(palette.color(f64::INFINITY), palette.color(1.0));
            assert_eq!(palette.color(-3.0), palette.color(0.0));
        }
    }
}
