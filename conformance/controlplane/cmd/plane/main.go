// plane runs a Kubernetes control plane: it makes certificates and configuration, starts etcd and the others in
// order, waits until they work, says so in one line, watches them, and ends them.
//
// Everything of a control plane is in one directory that this program makes and removes. Nothing outlives it: the
// processes get SIGKILL from the kernel when it dies, and it ends by itself when its leash is cut, that is, when
// whoever wanted the control plane is gone. It says `READY {…}` once, or `FAILED {…}`.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// Settings are what the caller decides.
type Settings struct {
	directory string
	binaries  string
	bind      string
	port      int
	pristine  bool
	keep      bool
	leash     string
	grace     time.Duration
}

// The kernel sends a child its parent's death signal when the thread that started it ends. The main goroutine starts
// every child, and stays on the main thread, which lives as long as the process.
func init() { runtime.LockOSThread() }

func main() {
	settings := parse()
	// Whoever started this may be gone; that is a reason to clean up, not to be killed while saying something.
	signal.Ignore(syscall.SIGPIPE)
	if err := run(settings); err != nil && !errors.Is(err, errEnded) {
		say("FAILED", asFailure(err))
		os.Exit(1)
	}
}

func parse() Settings {
	var s Settings
	flag.StringVar(&s.directory, "directory", "", "the directory to make, for everything of this control plane")
	flag.StringVar(&s.binaries, "binaries", ownDirectory(), "where the programs are: directories, separated by colons")
	flag.StringVar(&s.bind, "bind", "127.0.0.1", "the address on which the API server listens")
	flag.IntVar(&s.port, "port", 0, "the port of the API server; 0 takes a free one")
	flag.BoolVar(&s.pristine, "pristine", false, "only etcd and the API server: no controllers, no scheduler, no node")
	flag.BoolVar(&s.keep, "keep", false, "leave the directory behind")
	flag.StringVar(&s.leash, "leash", "none", "what keeps it running: none, stdin, or tcp:ADDRESS:PORT")
	flag.DurationVar(&s.grace, "grace", 30*time.Second, "how long to wait for the first connection to a tcp leash")
	flag.Parse()
	if s.directory == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	return s
}

func ownDirectory() string {
	own, err := os.Executable()
	if err != nil {
		return "."
	}
	return filepath.Dir(own)
}

// run makes the directory, runs the control plane in it until it is ended, and removes the directory.
func run(settings Settings) error {
	directory, err := filepath.Abs(settings.directory)
	if err != nil {
		return err
	}
	ends, err := watchForTheEnd(settings)
	if err != nil {
		return err
	}
	if err := os.Mkdir(directory, 0o700); err != nil {
		return err
	}
	group := newGroup(directory, settings.binaries, ends)
	defer func() {
		group.killAll()
		if !settings.keep {
			_ = os.RemoveAll(directory)
		}
	}()
	ready, err := start(settings, directory, group)
	if err != nil {
		return err
	}
	say("READY", ready)
	return group.watch()
}

// say prints one line: a word and what belongs to it.
func say(word string, what any) {
	text, err := json.Marshal(what)
	if err != nil {
		text = []byte("{}")
	}
	fmt.Printf("%s %s\n", word, text)
}
