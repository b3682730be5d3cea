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
	lookEvery = 20 * time.Millisecond
	endMax    = 10 * time.Second
	tailLines = 15
	// tailBytes bounds what is read of a log to find its last lines.
	tailBytes = 32 * 1024
)

// exited is a child that is gone.
type exited struct {
	name string
	how  string
}

// Group is the children, each with a log of its own.
type Group struct {
	directory string
	binaries  []string
	ends      <-chan string
	exits     chan exited
	children  map[string]*exec.Cmd
}

// childrenMax bounds the children: nobody has to read the news of their ends.
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

// await looks again and again whether something holds; whoever answers for it is named when it does not come to be.
func (g *Group) await(name, what string, within time.Duration, holds func() bool) error {
	late := time.After(within)
	for !holds() {
		select {
		case <-g.ends:
			return errEnded
		case child := <-g.exits:
			return g.failed(child)
		case <-late:
			reason := fmt.Sprintf("waited %s in vain for %s", within, what)
			return &Failure{Process: name, Reason: reason, Tail: g.tail(name)}
		case <-time.After(lookEvery):
		}
	}
	return nil
}

// watch waits for the end, or for a child that ends by itself.
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
		Reason:  fmt.Sprintf("%s ended by itself: %s", child.name, child.how),
		Tail:    g.tail(child.name),
	}
}

// tail has the last lines of a log.
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

// withoutStacks ends before what a program that panics says about its goroutines: the reason is above that.
func withoutStacks(lines []string) []string {
	for index, line := range lines {
		if index > 0 && strings.HasPrefix(line, "goroutine ") {
			return strings.Split(strings.TrimRight(strings.Join(lines[:index], "\n"), "\n"), "\n")
		}
	}
	return lines
}

// killAll ends every child at once: what they hold is thrown away, so that there is nothing to end in order.
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

// pids tells who runs.
func (g *Group) pids() map[string]int {
	pids := map[string]int{"plane": os.Getpid()}
	for name, child := range g.children {
		pids[name] = child.Process.Pid
	}
	return pids
}
