use crate::mono::MonoLog;
use crate::{Recording, Source};
use std::sync::Arc;
#[test]
fn scan() {
    let root = std::env::var("PERFUSE_CORPUS").unwrap();
    for set in ["crafted", "tiny", "v17", "versions"] {
        for e in std::fs::read_dir(format!("{root}/mono/{set}")).unwrap() {
            let p = e.unwrap().path();
            let p = p.to_str().unwrap().to_owned();
            if !p.contains(".mlpd") {
                continue;
            }
            let log = MonoLog::open(Arc::new(Source::open(&p).unwrap())).unwrap();
            let base = p.rsplit('/').next().unwrap().split(".mlpd").next().unwrap();
            let counts = String::from_utf8_lossy(
                &std::fs::read(format!("{root}/mono/counts/{set}/{base}.txt")).unwrap(),
            )
            .into_owned();
            let mut want = std::collections::BTreeMap::new();
            for l in counts.lines() {
                let l2: Vec<_> = l.split_whitespace().collect();
                if l.starts_with("  ") && !l.starts_with("   ") && l2[0].len() == 2 {
                    let n = l2.len();
                    want.insert(l2[1..n - 3].join("_"), l2[n - 3].parse::<u64>().unwrap());
                }
            }
            let got: std::collections::BTreeMap<_, _> = log.summary().counts.into_iter().collect();
            if got != want || !log.survey().faults.is_empty() {
                println!(
                    "{p} {:?}\n got {got:?}\nwant {want:?} {:?}",
                    log.survey().faults,
                    log.survey().buffers.losses
                );
            }
        }
    }
}
#[test]
fn rt() {
    use crate::mono::{encode::Encoder, records::Event};
    let root = std::env::var("PERFUSE_CORPUS").unwrap();
    for set in ["crafted", "tiny", "v17", "versions"] {
        for e in std::fs::read_dir(format!("{root}/mono/{set}")).unwrap() {
            let p = e.unwrap().path();
            let p = p.to_str().unwrap().to_owned();
            if !p.contains(".mlpd") {
                continue;
            }
            let log = MonoLog::open(Arc::new(Source::open(&p).unwrap())).unwrap();
            let mut out = vec![];
            log.header().write(&mut out);
            let s = log.survey();
            for b in &s.buffers.list {
                let mut e = Encoder::like(s.dialect, &b.header);
                let mut d = b.decoder(log.source(), s.dialect);
                let mut ev = Event::default();
                while let Some(r) = d.read(&mut ev) {
                    r.unwrap();
                    e.write(&mut ev).unwrap();
                }
                e.finish(&mut out).unwrap();
            }
            let src: &[u8] = log.source();
            if out != src {
                let at = out.iter().zip(src).position(|(a, b)| a != b);
                println!("{p} differs at {at:?} {} {}", out.len(), src.len());
            }
        }
    }
}
