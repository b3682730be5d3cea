//! The pages of memory that the process asks the system for.

/// Small ones. A broker holds many thousand small things that come and go, and with huge pages a part of each page in
/// which something is left stays taken: half as much again for ten thousand agents that wait. Where the system has no
/// huge pages, nothing changes.
pub fn keep_small() {
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}
