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

// greeting is sent on every accepted connection.
const greeting = "held\n"

// watchForEnd sends a reason on the channel when everything must end: after a signal, or when stdin or the last
// connection is closed, depending on --keep-alive.
func watchForEnd(settings Settings) (<-chan string, error) {
	ends := make(chan string, 8)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	go func() {
		for signal := range signals {
			end(ends, signal.String())
		}
	}()
	address, isTCP := strings.CutPrefix(settings.keepAlive, "tcp:")
	switch {
	case settings.keepAlive == "none":
		return ends, nil
	case settings.keepAlive == "stdin":
		go watchInput(ends)
		return ends, nil
	case isTCP:
		return ends, watchConnections(address, settings.grace, ends)
	default:
		return nil, fmt.Errorf("--keep-alive takes none, stdin or tcp:ADDRESS:PORT, not %q", settings.keepAlive)
	}
}

// end sends a reason without blocking: one is enough.
func end(ends chan<- string, why string) {
	select {
	case ends <- why:
	default:
	}
}

// watchInput waits until stdin is closed, by the owner or by the kernel when the owner was killed.
func watchInput(ends chan<- string) {
	_, _ = io.Copy(io.Discard, os.Stdin)
	end(ends, "stdin was closed")
}

// watchConnections ends when the last connection is closed, or none comes in time.
func watchConnections(address string, grace time.Duration, ends chan<- string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	var open, seen atomic.Int64
	time.AfterFunc(grace, func() {
		if seen.Load() == 0 {
			end(ends, "there was no connection")
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
				// A client behind a proxy learns from the greeting that the connection is accepted here.
				_, _ = io.WriteString(connection, greeting)
				_, _ = io.Copy(io.Discard, connection)
				_ = connection.Close()
				if open.Add(-1) == 0 {
					end(ends, "the last connection was closed")
				}
			}()
		}
	}()
	return nil
}
