package main

import (
	"errors"
	"strings"
	"syscall"
)

// errEnded is no failure: someone asked for the end.
var errEnded = errors.New("ended")

// Failure is why there is no control plane, for whoever has to put it right.
type Failure struct {
	// Process is whose fault it is, if it is a process's.
	Process string `json:"process,omitempty"`
	Reason  string `json:"reason"`
	// Tail has the last lines of that process's log.
	Tail   []string `json:"tail,omitempty"`
	Advice string   `json:"advice,omitempty"`
}

func (f *Failure) Error() string { return f.Reason }

func asFailure(err error) *Failure {
	var failure *Failure
	if !errors.As(err, &failure) {
		failure = &Failure{Reason: err.Error()}
	}
	if failure.Advice == "" {
		failure.Advice = advice(err, strings.Join(failure.Tail, "\n"))
	}
	return failure
}

// advice is what to do, by what the error or the log says.
func advice(err error, log string) string {
	text := err.Error() + "\n" + log
	switch {
	case errors.Is(err, syscall.ENOSPC), strings.Contains(text, "no space left on device"),
		strings.Contains(text, "disk quota exceeded"), strings.Contains(text, "file too large"):
		return "the disk is full: make room where the control plane's directory is, or choose another place with TMPDIR"
	case errors.Is(err, syscall.EADDRINUSE), strings.Contains(text, "address already in use"):
		return "the port is taken: choose another one, or none to get a free one"
	case strings.Contains(text, "signal: killed"):
		return "it was killed: see whether the machine ran out of memory"
	case strings.Contains(text, "exec format error"), strings.Contains(text, "no such file or directory"):
		return "the program is broken or missing: build the control plane again"
	default:
		return "start it with --keep to see every log, or build the control plane again"
	}
}
