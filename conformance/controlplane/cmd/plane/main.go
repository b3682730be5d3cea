// plane supervises a Kubernetes control plane: it creates certificates and configuration, starts etcd and the other
// programs in order, waits until they are ready, prints one line, watches them, and ends them.
//
// All files of a control plane are in one directory that this program creates and removes. No process outlives it: the
// kernel sends SIGKILL to the children when it ends, and it ends when its owner has ended (--keep-alive). It prints
// `READY {…}` once, or `FAILED {…}`.
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

// Settings are the values of the flags.
type Settings struct {
	directory string
	binaries  string
	bind      string
	port      int
	pristine  bool
	keep      bool
	keepAlive string
	grace     time.Duration
}

// The kernel sends a child its parent's death signal when the thread that started it ends. The main goroutine starts
// every child, and stays on the main thread, which lives as long as the process.
func init() { runtime.LockOSThread() }

func main() {
	settings := parse()
	// The owner may have ended; then this program must clean up, and not be killed by a write to a closed pipe.
	signal.Ignore(syscall.SIGPIPE)
	if err := run(settings); err != nil && !errors.Is(err, errEnded) {
		printStatus("FAILED", asFailure(err))
		os.Exit(1)
	}
}

func parse() Settings {
	var s Settings
	flag.StringVar(&s.directory, "directory", "", "the directory to create for all files of this control plane")
	flag.StringVar(&s.binaries, "binaries", ownDirectory(), "directories of the programs, separated by colons")
	flag.StringVar(&s.bind, "bind", "127.0.0.1", "the address on which the API server listens")
	flag.IntVar(&s.port, "port", 0, "the port of the API server; 0 takes a free one")
	flag.BoolVar(&s.pristine, "pristine", false, "only etcd and the API server: no controllers, no scheduler, no node")
	flag.BoolVar(&s.keep, "keep", false, "keep the directory after the end")
	flag.StringVar(&s.keepAlive, "keep-alive", "none", "what keeps it running: none, stdin, or tcp:ADDRESS:PORT")
	flag.DurationVar(&s.grace, "grace", 30*time.Second, "how long to wait for the first connection with --keep-alive=tcp:…")
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

// run creates the directory, runs the control plane in it until its end, and removes the directory.
func run(settings Settings) error {
	directory, err := filepath.Abs(settings.directory)
	if err != nil {
		return err
	}
	ends, err := watchForEnd(settings)
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
	printStatus("READY", ready)
	return group.watch()
}

// printStatus prints one line: a word and a value as JSON.
func printStatus(word string, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		text = []byte("{}")
	}
	fmt.Printf("%s %s\n", word, text)
}
