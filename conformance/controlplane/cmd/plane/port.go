package main

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// soReusePort lets several sockets of one user have the same port; package syscall does not name it everywhere.
const soReusePort = 0xf

// reserve takes a port, or any free one, and keeps it as long as this process lives: the socket is bound and never
// listens. The API server shares the port by `--permit-port-sharing`, and nobody can take it in between.
func reserve(address string, port int) (int, error) {
	ip := net.ParseIP(address).To4()
	if ip == nil {
		return 0, fmt.Errorf("--bind takes an IPv4 address, not %q", address)
	}
	if port != 0 {
		// Shared ports would let two control planes of one user have the same: who asks for a port asks alone.
		if err := probe(address, port); err != nil {
			return 0, err
		}
	}
	// By hand, because the sockets of package net would listen at once, and be given connections.
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	if err := syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, soReusePort, 1); err != nil {
		return 0, err
	}
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Port: port, Addr: [4]byte(ip)}); err != nil {
		return 0, portFailure(address, port, err)
	}
	name, err := syscall.Getsockname(socket)
	if err != nil {
		return 0, err
	}
	return name.(*syscall.SockaddrInet4).Port, nil
}

// probe sees whether anyone has the port.
func probe(address string, port int) error {
	listener, err := net.Listen("tcp4", fmt.Sprintf("%s:%d", address, port))
	if err != nil {
		return portFailure(address, port, err)
	}
	return listener.Close()
}

func portFailure(address string, port int, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return &Failure{
			Reason: fmt.Sprintf("port %d of %s is taken", port, address),
			Advice: "choose another port, or none to get a free one",
		}
	}
	return fmt.Errorf("port %d of %s: %w", port, address, err)
}
