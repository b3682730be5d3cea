package main

import (
	"errors"
	"strings"
	"syscall"
)

// errEnded is no failure: the owner or a signal asked for the end.
var errEnded = errors.New("ended")

// Failure is the reason for which there is no control plane, with advice.
type Failure struct {
	// Process is the name of the process that failed, if one did.
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

// advice returns advice that matches the error or the log.
func advice(err error, log string) string {
	text := err.Error() + "\n" + log
	switch {
	case errors.Is(err, syscall.ENOSPC), strings.Contains(text, "no space left on device"),
		strings.Contains(text, "disk quota exceeded"), strings.Contains(text, "file too large"):
		return "the disk is full: make room in the control plane's directory, or choose another one with TMPDIR"
	case errors.Is(err, syscall.EADDRINUSE), strings.Contains(text, "address already in use"):
		return "the port is in use: choose another one, or none to get a free one"
	case strings.Contains(text, "signal: killed"):
		return "it was killed: check whether the machine ran out of memory"
	case strings.Contains(text, "exec format error"), strings.Contains(text, "no such file or directory"):
		return "the program is broken or missing: build the control plane again"
	default:
		return "start it with --keep to keep all logs, or build the control plane again"
	}
}
