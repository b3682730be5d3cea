package main

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// soReusePort is SO_REUSEPORT, which package syscall does not define on every platform.
const soReusePort = 0xf

// reserve binds a port, or any free one, for the life of this process, without listening. The API server shares it with
// `--permit-port-sharing`, so that no other process can take it in between.
func reserve(address string, port int) (int, error) {
	ip := net.ParseIP(address).To4()
	if ip == nil {
		return 0, fmt.Errorf("--bind takes an IPv4 address, not %q", address)
	}
	if port != 0 {
		// Port sharing would allow two control planes of one user on the same port: a given port must be unused.
		if err := probe(address, port); err != nil {
			return 0, err
		}
	}
	// Package net cannot bind a socket without listening.
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

// probe checks that the port is unused.
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
			Reason: fmt.Sprintf("port %d of %s is in use", port, address),
			Advice: "choose another port, or none to get a free one",
		}
	}
	return fmt.Errorf("port %d of %s: %w", port, address, err)
}
