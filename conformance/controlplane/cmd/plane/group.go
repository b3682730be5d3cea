package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	checkInterval = 20 * time.Millisecond
	endMax    = 10 * time.Second
	tailLines = 15
	// tailBytes is the maximum size that is read of a log to find its last lines.
	tailBytes = 32 * 1024
)

// exited is a child that has ended.
type exited struct {
	name string
	how  string
}

// Group has the child processes, each with a log of its own.
type Group struct {
	directory string
	binaries  []string
	ends      <-chan string
	exits     chan exited
	children  map[string]*exec.Cmd
}

// childrenMax is the capacity of the channel of ends, so that no sender blocks.
const childrenMax = 16

func newGroup(directory, binaries string, ends <-chan string) *Group {
	return &Group{directory, strings.Split(binaries, ":"), ends, make(chan exited, childrenMax), map[string]*exec.Cmd{}}
}

func (g *Group) log(name string) string { return filepath.Join(g.directory, "logs", name+".log") }

// start runs a program with its output in a log. The kernel kills it when this process dies.
func (g *Group) start(name string, arguments ...string) error {
	log, err := os.OpenFile(g.log(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	child := exec.Command(g.find(name), arguments...)
	child.Dir, child.Stdout, child.Stderr = g.directory, log, log
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := child.Start(); err != nil {
		return &Failure{Process: name, Reason: fmt.Sprintf("%s cannot be started: %v", name, err)}
	}
	g.children[name] = child
	go func() {
		_ = child.Wait()
		g.exits <- exited{name, child.ProcessState.String()}
	}()
	return nil
}

func (g *Group) find(name string) string {
	for _, directory := range g.binaries {
		path := filepath.Join(directory, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return filepath.Join(g.binaries[0], name)
}

// await polls until the condition holds. The failure after the timeout names the process that is responsible.
func (g *Group) await(name, what string, within time.Duration, holds func() bool) error {
	late := time.After(within)
	for !holds() {
		select {
		case <-g.ends:
			return errEnded
		case child := <-g.exits:
			return g.failed(child)
		case <-late:
			reason := fmt.Sprintf("waited %s for %s", within, what)
			return &Failure{Process: name, Reason: reason, Tail: g.tail(name)}
		case <-time.After(checkInterval):
		}
	}
	return nil
}

// watch waits for the request to end, or for a child that ends unexpectedly.
func (g *Group) watch() error {
	select {
	case <-g.ends:
		return errEnded
	case child := <-g.exits:
		return g.failed(child)
	}
}

func (g *Group) failed(child exited) error {
	delete(g.children, child.name)
	return &Failure{
		Process: child.name,
		Reason:  fmt.Sprintf("%s ended unexpectedly: %s", child.name, child.how),
		Tail:    g.tail(child.name),
	}
}

// tail returns the last lines of a log.
func (g *Group) tail(name string) []string {
	text, err := os.ReadFile(g.log(name))
	if err != nil {
		return nil
	}
	if len(text) > tailBytes {
		text = text[len(text)-tailBytes:]
	}
	lines := strings.Split(strings.TrimRight(string(bytes.ToValidUTF8(text, []byte("?"))), "\n"), "\n")
	lines = withoutStacks(lines)
	return lines[max(0, len(lines)-tailLines):]
}

// withoutStacks removes the goroutine stacks of a panic: the reason is above them.
func withoutStacks(lines []string) []string {
	for index, line := range lines {
		if index > 0 && strings.HasPrefix(line, "goroutine ") {
			return strings.Split(strings.TrimRight(strings.Join(lines[:index], "\n"), "\n"), "\n")
		}
	}
	return lines
}

// killAll kills all children at the same time: their data is deleted, so no orderly shutdown is needed.
func (g *Group) killAll() {
	for _, child := range g.children {
		_ = child.Process.Kill()
	}
	late := time.After(endMax)
	for range len(g.children) {
		select {
		case <-g.exits:
		case <-late:
			return
		}
	}
}

// pids returns the process ids by name.
func (g *Group) pids() map[string]int {
	pids := map[string]int{"plane": os.Getpid()}
	for name, child := range g.children {
		pids[name] = child.Process.Pid
	}
	return pids
}
