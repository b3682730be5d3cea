package main

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const (
	// Timeouts until each is ready, on an overloaded machine.
	etcdMax       = 60 * time.Second
	apiServerMax  = 120 * time.Second
	controllerMax = 60 * time.Second
	nodeMax       = 60 * time.Second

	// serviceRange has the addresses of Services; serviceAddress is the first of them, that of the API server.
	serviceRange   = "10.96.0.0/16"
	serviceAddress = "10.96.0.1"
	// advertised is recorded as the API server's address. No pod runs that could use it; an address reserved for
	// documentation is the same on every machine, and needs no network.
	advertised = "192.0.2.1"
	issuer     = "https://kubernetes.default.svc.cluster.local"
	// All programs run in the control plane's directory, because a relative path is short enough for a socket. etcd
	// requires the form of a host and a port.
	etcdSocket = "etcd.sock:0"
	peerSocket = "peer.sock:0"

	admin      = "sindri-admin"
	masters    = "system:masters"
	tokenBytes = 24
	// tokenVariable is the environment variable with the administrator's token, if the caller chose it.
	tokenVariable = "PLANE_TOKEN"
	directories   = 0o700
)

// Ready has the addresses, files and processes of a control plane.
type Ready struct {
	Server            string         `json:"server"`
	Port              int            `json:"port"`
	Directory         string         `json:"directory"`
	Logs              string         `json:"logs"`
	Kubeconfig        string         `json:"kubeconfig"`
	Authority         string         `json:"authority"`
	AuthorityPEM      string         `json:"authority_pem"`
	Token             string         `json:"token"`
	ClientCertificate string         `json:"client_certificate"`
	ClientKey         string         `json:"client_key"`
	Pids              map[string]int `json:"pids"`
}

// plane is the state of a start.
type plane struct {
	settings  Settings
	directory string
	group     *Group
	port      int
	server    string
	keys      *keys
	api       *api
}

// start starts all programs in order.
func start(settings Settings, directory string, group *Group) (*Ready, error) {
	p := &plane{settings: settings, directory: directory, group: group}
	steps := []func() error{p.prepare, p.startEtcd, p.startAPIServer}
	if !settings.pristine {
		steps = append(steps, p.startOthers)
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return &Ready{
		Server: p.server, Port: p.port, Directory: directory, Logs: filepath.Join(directory, "logs"),
		Kubeconfig: p.path("kubeconfig"), Authority: p.keys.authority.certPath,
		AuthorityPEM: string(p.keys.authority.certPEM), Token: p.path("token"),
		ClientCertificate: p.keys.admin.certPath, ClientKey: p.keys.admin.keyPath, Pids: group.pids(),
	}, nil
}

func (p *plane) path(file string) string { return filepath.Join(p.directory, file) }

// prepare reserves the port and writes all files.
func (p *plane) prepare() error {
	for _, directory := range []string{"logs", "pki"} {
		if err := os.Mkdir(p.path(directory), directories); err != nil {
			return err
		}
	}
	var err error
	if p.port, err = reserve(p.settings.bind, p.settings.port); err != nil {
		return err
	}
	p.server = fmt.Sprintf("https://127.0.0.1:%d", p.port)
	if p.keys, err = newKeys(p.path("pki")); err != nil {
		return err
	}
	token, err := chooseToken()
	if err != nil {
		return err
	}
	return p.writeFiles(token)
}

// chooseToken returns the token of the caller, who cannot read the files of a container, or creates one.
func chooseToken() (string, error) {
	if token := os.Getenv(tokenVariable); token != "" {
		return token, nil
	}
	token := make([]byte, tokenBytes)
	_, err := rand.Read(token)
	return hex.EncodeToString(token), err
}

// keys has the certificates of a control plane.
type keys struct {
	authority, server, admin, controllers, scheduler *Pair
	serviceAccounts                                  string
}

func newKeys(directory string) (*keys, error) {
	authority, err := newAuthority(directory)
	if err != nil {
		return nil, err
	}
	k := &keys{authority: authority}
	if k.server, err = authority.server(directory, serviceAddress); err != nil {
		return nil, err
	}
	if k.admin, err = authority.client(directory, "admin", admin, masters); err != nil {
		return nil, err
	}
	if k.controllers, err = authority.client(directory, controllerManager, "system:"+controllerManager); err != nil {
		return nil, err
	}
	if k.scheduler, err = authority.client(directory, scheduler, "system:"+scheduler); err != nil {
		return nil, err
	}
	k.serviceAccounts, err = newServiceAccountKey(directory)
	return k, err
}

func (p *plane) writeFiles(token string) error {
	p.api = newAPI(p.server, p.keys.authority.certificate, token)
	texts := map[string]string{
		"token":       token,
		"tokens.csv":  fmt.Sprintf("%s,%s,%s,%s\n", token, admin, admin, masters),
		"stages.yaml": stages,
	}
	for file, text := range texts {
		if err := os.WriteFile(p.path(file), []byte(text), 0o600); err != nil {
			return err
		}
	}
	users := map[string]object{
		"kubeconfig":                               {"token": token},
		"pki/kwok.kubeconfig":                      byCertificate(p.keys.admin),
		"pki/" + scheduler + ".kubeconfig":         byCertificate(p.keys.scheduler),
		"pki/" + controllerManager + ".kubeconfig": byCertificate(p.keys.controllers),
	}
	for file, user := range users {
		if err := writeKubeconfig(p.path(file), p.server, p.keys.authority.certPEM, user); err != nil {
			return err
		}
	}
	return nil
}
