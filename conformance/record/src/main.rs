//! temp
use sindri_record::*;
use std::path::Path;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let (server, ca, full_server, full_ca, root, out, filter) =
        (&args[1], &args[2], &args[3], &args[4], &args[5], &args[6], args.get(7).cloned().unwrap_or_default());
    let rt = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let pristine =
        target::Target::new(server, Some(&std::fs::read_to_string(ca).unwrap()), Some("admintoken")).unwrap();
    let full =
        target::Target::new(full_server, Some(&std::fs::read_to_string(full_ca).unwrap()), Some("admintoken")).unwrap();
    let scripts = library::scripts(Path::new(root)).unwrap();
    rt.block_on(async {
        let mut all = files::Files::new();
        if filter.is_empty() {
            all.extend(recording::record_documents(&pristine).await.unwrap());
        }
        for s in scripts.iter().filter(|s| s.name.contains(&filter)) {
            let t = if s.controllers { &full } else { &pristine };
            let began = tokio::time::Instant::now();
            match recording::record_exchange(s, t).await {
                Ok((n, f)) => {
                    println!("{n} {:?} {}", began.elapsed(), f.len());
                    all.insert(n, f);
                }
                Err(e) => println!("FAILED {e}"),
            }
        }
        let dir = Path::new(out);
        if filter.is_empty() {
            files::write(dir, &all).unwrap();
        } else {
            for (n, f) in all {
                let p = dir.join(n);
                std::fs::create_dir_all(p.parent().unwrap()).unwrap();
                std::fs::write(p, f).unwrap();
            }
        }
    });
}
