//! A disk in memory for SQLite: its files outlive the process that wrote them, and the real disk is not used.
//!
//! One disk per thread, so one per run. A write is durable at once, as with a kill of the process; the loss of unsynced
//! writes at a power cut is not modelled. There are no locks: a database belongs to one host, and SQLite opens it with an
//! exclusive lock.
#![expect(unsafe_code, reason = "SQLite calls a VFS through C function pointers")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Once;

use rusqlite::ffi;

/// Name of this disk in SQLite.
pub const VFS_NAME: &str = "sindri-world";
const VFS_NAME_C: &CStr = c"sindri-world";
const PATH_BYTES_MAX: c_int = 512;
/// Julian day number of 1970-01-01 in milliseconds, the unit in which SQLite counts time.
const JULIAN_UNIX_MS: i64 = 210_866_760_000_000;

thread_local! {
    static FILES: RefCell<BTreeMap<String, Vec<u8>>> = const { RefCell::new(BTreeMap::new()) };
}

/// Registers the disk with SQLite, once per process, and empties the one of this thread.
pub fn prepare(seed: u64) {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(register);
    FILES.with_borrow_mut(BTreeMap::clear);
    // SAFETY: documented test control; takes an int seed and a connection that may be null.
    unsafe {
        let connection = std::ptr::null_mut::<c_void>();
        ffi::sqlite3_test_control(ffi::SQLITE_TESTCTRL_PRNG_SEED, (seed as u32 | 1) as c_int, connection);
    }
}

/// Copies every file of this thread's disk.
pub fn copy_files() -> BTreeMap<String, Vec<u8>> {
    FILES.with_borrow(BTreeMap::clone)
}

/// Replaces every file by a copy. No process may have a file open.
pub fn replace_files(files: BTreeMap<String, Vec<u8>>) {
    FILES.set(files);
}

/// Memory that SQLite allocates for each open file; the first field belongs to SQLite.
#[repr(C)]
struct OpenFile {
    base: ffi::sqlite3_file,
    path: *mut String,
    delete_on_close: bool,
}

fn with_content<T>(file: *mut ffi::sqlite3_file, missing: T, act: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    // SAFETY: SQLite passes the file that `open` filled in.
    let path = unsafe { &*(*file.cast::<OpenFile>()).path };
    FILES.with_borrow_mut(|files| files.get_mut(path).map_or(missing, act))
}

fn text(name: *const c_char) -> String {
    // SAFETY: SQLite passes NUL-terminated names.
    unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: the pointer that `open` made, freed exactly once.
    let (path, delete) = unsafe {
        let file = file.cast::<OpenFile>();
        (Box::from_raw((*file).path), (*file).delete_on_close)
    };
    if delete {
        FILES.with_borrow_mut(|files| files.remove(&*path));
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn read(file: *mut ffi::sqlite3_file, out: *mut c_void, amount: c_int, offset: i64) -> c_int {
    with_content(file, ffi::SQLITE_IOERR_READ, |content| {
        // SAFETY: SQLite promises `amount` writable bytes.
        let out = unsafe { std::slice::from_raw_parts_mut(out.cast::<u8>(), amount as usize) };
        let available = content.get(offset as usize..).unwrap_or_default();
        let length = available.len().min(out.len());
        out[..length].copy_from_slice(&available[..length]);
        out[length..].fill(0);
        if length < out.len() { ffi::SQLITE_IOERR_SHORT_READ } else { ffi::SQLITE_OK }
    })
}

unsafe extern "C" fn write(file: *mut ffi::sqlite3_file, bytes: *const c_void, amount: c_int, offset: i64) -> c_int {
    with_content(file, ffi::SQLITE_IOERR_WRITE, |content| {
        // SAFETY: SQLite promises `amount` readable bytes.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), amount as usize) };
        let (start, end) = (offset as usize, offset as usize + bytes.len());
        if content.len() < end {
            content.resize(end, 0);
        }
        content[start..end].copy_from_slice(bytes);
        ffi::SQLITE_OK
    })
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: i64) -> c_int {
    with_content(file, ffi::SQLITE_IOERR_TRUNCATE, |content| {
        content.truncate(size as usize);
        ffi::SQLITE_OK
    })
}

unsafe extern "C" fn size(file: *mut ffi::sqlite3_file, out: *mut i64) -> c_int {
    with_content(file, ffi::SQLITE_IOERR_FSTAT, |content| {
        // SAFETY: SQLite promises a writable number.
        unsafe { out.write(content.len() as i64) };
        ffi::SQLITE_OK
    })
}

unsafe extern "C" fn sync(_: *mut ffi::sqlite3_file, _: c_int) -> c_int {
    ffi::SQLITE_OK
}

unsafe extern "C" fn lock(_: *mut ffi::sqlite3_file, _: c_int) -> c_int {
    ffi::SQLITE_OK
}

unsafe extern "C" fn check_lock(_: *mut ffi::sqlite3_file, out: *mut c_int) -> c_int {
    // SAFETY: SQLite promises a writable number.
    unsafe { out.write(0) };
    ffi::SQLITE_OK
}

unsafe extern "C" fn control(_: *mut ffi::sqlite3_file, _: c_int, _: *mut c_void) -> c_int {
    ffi::SQLITE_NOTFOUND
}

unsafe extern "C" fn sector(_: *mut ffi::sqlite3_file) -> c_int {
    4096
}

unsafe extern "C" fn characteristics(_: *mut ffi::sqlite3_file) -> c_int {
    0
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 1,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(size),
    xLock: Some(lock),
    xUnlock: Some(lock),
    xCheckReservedLock: Some(check_lock),
    xFileControl: Some(control),
    xSectorSize: Some(sector),
    xDeviceCharacteristics: Some(characteristics),
    xShmMap: None,
    xShmLock: None,
    xShmBarrier: None,
    xShmUnmap: None,
    xFetch: None,
    xUnfetch: None,
};

unsafe extern "C" fn open(
    _: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    flags_out: *mut c_int,
) -> c_int {
    let created = FILES.with_borrow_mut(|files| {
        let path = if name.is_null() { format!("temporary-{}", files.len()) } else { text(name) };
        if !files.contains_key(&path) {
            if flags & ffi::SQLITE_OPEN_CREATE == 0 {
                return None;
            }
            files.insert(path.clone(), Vec::new());
        }
        Some(path)
    });
    // SAFETY: SQLite allocated `szOsFile` bytes for this file and, where it asks for them, room for the flags.
    unsafe {
        let opened = file.cast::<OpenFile>();
        (*opened).base.pMethods = std::ptr::null();
        let Some(path) = created else { return ffi::SQLITE_CANTOPEN };
        (*opened).path = Box::into_raw(Box::new(path));
        (*opened).delete_on_close = flags & ffi::SQLITE_OPEN_DELETEONCLOSE != 0;
        (*opened).base.pMethods = &METHODS;
        if !flags_out.is_null() {
            flags_out.write(flags);
        }
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn delete(_: *mut ffi::sqlite3_vfs, name: *const c_char, _: c_int) -> c_int {
    match FILES.with_borrow_mut(|files| files.remove(&text(name))) {
        Some(_) => ffi::SQLITE_OK,
        None => ffi::SQLITE_IOERR_DELETE_NOENT,
    }
}

unsafe extern "C" fn access(_: *mut ffi::sqlite3_vfs, name: *const c_char, _: c_int, out: *mut c_int) -> c_int {
    let exists = FILES.with_borrow(|files| files.contains_key(&text(name)));
    // SAFETY: SQLite promises a writable number.
    unsafe { out.write(c_int::from(exists)) };
    ffi::SQLITE_OK
}

unsafe extern "C" fn full_path(_: *mut ffi::sqlite3_vfs, name: *const c_char, room: c_int, out: *mut c_char) -> c_int {
    // SAFETY: SQLite passes a NUL-terminated name and `room` writable bytes.
    unsafe {
        let bytes = CStr::from_ptr(name).to_bytes_with_nul();
        if bytes.len() > room as usize {
            return ffi::SQLITE_CANTOPEN;
        }
        std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), out, bytes.len());
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn randomness(_: *mut ffi::sqlite3_vfs, amount: c_int, out: *mut c_char) -> c_int {
    // SAFETY: SQLite promises `amount` writable bytes.
    unsafe { std::slice::from_raw_parts_mut(out, amount as usize) }.fill(0);
    amount
}

unsafe extern "C" fn sleep(_: *mut ffi::sqlite3_vfs, micros: c_int) -> c_int {
    micros
}

unsafe extern "C" fn last_error(_: *mut ffi::sqlite3_vfs, _: c_int, _: *mut c_char) -> c_int {
    0
}

fn julian_ms() -> i64 {
    JULIAN_UNIX_MS + (crate::libc_shim::EPOCH_SECONDS * 1_000) as i64 + (crate::libc_shim::now() / 1_000_000) as i64
}

unsafe extern "C" fn time_days(_: *mut ffi::sqlite3_vfs, out: *mut f64) -> c_int {
    // SAFETY: SQLite promises a writable number.
    unsafe { out.write(julian_ms() as f64 / 86_400_000.0) };
    ffi::SQLITE_OK
}

unsafe extern "C" fn time_millis(_: *mut ffi::sqlite3_vfs, out: *mut i64) -> c_int {
    // SAFETY: SQLite promises a writable number.
    unsafe { out.write(julian_ms()) };
    ffi::SQLITE_OK
}

fn register() {
    // SAFETY: an all-zero sqlite3_vfs is a valid one without optional methods; it is never freed, as SQLite asks.
    unsafe {
        let vfs: &mut ffi::sqlite3_vfs = Box::leak(Box::new(std::mem::zeroed()));
        vfs.iVersion = 2;
        vfs.szOsFile = size_of::<OpenFile>() as c_int;
        vfs.mxPathname = PATH_BYTES_MAX;
        vfs.zName = VFS_NAME_C.as_ptr();
        vfs.xOpen = Some(open);
        vfs.xDelete = Some(delete);
        vfs.xAccess = Some(access);
        vfs.xFullPathname = Some(full_path);
        vfs.xRandomness = Some(randomness);
        vfs.xSleep = Some(sleep);
        vfs.xGetLastError = Some(last_error);
        vfs.xCurrentTime = Some(time_days);
        vfs.xCurrentTimeInt64 = Some(time_millis);
        assert_eq!(ffi::sqlite3_vfs_register(vfs, 0), ffi::SQLITE_OK, "SQLite refused the simulated disk");
    }
}
