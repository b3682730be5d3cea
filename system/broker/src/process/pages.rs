//! Memory pages of the process.

/// Disables transparent huge pages. A broker has many thousand small allocations that come and go, and a huge page stays
/// resident while any of it is in use: half as much memory again for ten thousand waiting polls. Has no effect where the
/// system has no huge pages.
pub fn disable_huge_pages() {
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}
