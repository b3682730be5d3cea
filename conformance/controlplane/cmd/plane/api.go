package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"time"
)

const (
	callMax = 5 * time.Second
	// responseMax is the maximum size of a response.
	responseMax = 1 << 20
)

// api is a client of the API server.
type api struct {
	server string
	token  string
	client *http.Client
}

func newAPI(server string, authority *x509.Certificate, token string) *api {
	trusted := x509.NewCertPool()
	trusted.AddCert(authority)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}
	return &api{server, token, &http.Client{Timeout: callMax, Transport: transport}}
}

func (a *api) call(method, path string, body []byte) (int, []byte) {
	request, err := http.NewRequest(method, a.server+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil
	}
	request.Header.Set("Authorization", "Bearer "+a.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := a.client.Do(request)
	if err != nil {
		return 0, nil
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, responseMax))
	if err != nil {
		return 0, nil
	}
	return response.StatusCode, content
}

// isReadable returns true if the path can be read.
func (a *api) isReadable(path string) bool {
	status, _ := a.call(http.MethodGet, path, nil)
	return status == http.StatusOK
}

// create creates an object, and returns true if it exists now.
func (a *api) create(path string, value object) bool {
	body, err := json.Marshal(value)
	if err != nil {
		return false
	}
	status, _ := a.call(http.MethodPost, path, body)
	return status == http.StatusCreated || status == http.StatusConflict
}

// isHealthy checks etcd over its socket.
func isHealthy(socket string) bool {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	client := &http.Client{Timeout: callMax, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	response, err := client.Get("http://etcd/health")
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}
