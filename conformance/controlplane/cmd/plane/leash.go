package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// leashGreeting is what a connection is told.
const leashGreeting = "held\n"

// watchForTheEnd tells on a channel when everything shall end: a signal came, or the leash was cut.
func watchForTheEnd(settings Settings) (<-chan string, error) {
	ends := make(chan string, 8)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	go func() {
		for signal := range signals {
			end(ends, signal.String())
		}
	}()
	address, isTCP := strings.CutPrefix(settings.leash, "tcp:")
	switch {
	case settings.leash == "none":
		return ends, nil
	case settings.leash == "stdin":
		go holdInput(ends)
		return ends, nil
	case isTCP:
		return ends, holdConnections(address, settings.grace, ends)
	default:
		return nil, fmt.Errorf("--leash takes none, stdin or tcp:ADDRESS:PORT, not %q", settings.leash)
	}
}

// end tells it without waiting: one reason is enough.
func end(ends chan<- string, why string) {
	select {
	case ends <- why:
	default:
	}
}

// holdInput waits for the end of the input, which comes when its other side is closed or dead.
func holdInput(ends chan<- string) {
	_, _ = io.Copy(io.Discard, os.Stdin)
	end(ends, "the input was closed")
}

// holdConnections ends when the last connection is closed, or none comes in time.
func holdConnections(address string, grace time.Duration, ends chan<- string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	var open, seen atomic.Int64
	time.AfterFunc(grace, func() {
		if seen.Load() == 0 {
			end(ends, "nobody held the leash")
		}
	})
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			open.Add(1)
			seen.Add(1)
			go func() {
				// Who connects through something in between learns by this that the leash is held here.
				_, _ = io.WriteString(connection, leashGreeting)
				_, _ = io.Copy(io.Discard, connection)
				_ = connection.Close()
				if open.Add(-1) == 0 {
					end(ends, "the leash was cut")
				}
			}()
		}
	}()
	return nil
}
