package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity is longer than the life of any control plane, with a margin for clock skew.
const validity = 10 * 365 * 24 * time.Hour

// serialBits is the size of a random serial number, so that none repeats.
const serialBits = 120

// Pair is a certificate with its key, and their files.
type Pair struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	certPEM     []byte
	keyPEM      []byte
	certPath    string
	keyPath     string
}

// newAuthority creates the certificate that signs all others.
func newAuthority(directory string) (*Pair, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "sindri-control-plane"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
	}
	return issue(directory, "ca", template, nil)
}

// server creates the certificate of the API server, for all its names and addresses.
func (authority *Pair) server(directory, serviceAddress string) (*Pair, error) {
	return issue(directory, "kube-apiserver", &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, net.ParseIP(serviceAddress)},
		DNSNames: []string{
			"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc.cluster.local",
		},
	}, authority)
}

// client creates the certificate of a user with groups.
func (authority *Pair) client(directory, file, user string, groups ...string) (*Pair, error) {
	return issue(directory, file, &x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, authority)
}

// issue creates a key and a certificate, signed by the authority or self-signed, and writes both.
func issue(directory, file string, template *x509.Certificate, authority *Pair) (*Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits)); err != nil {
		return nil, err
	}
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = template.NotBefore.Add(validity)
	parent, signer := template, key
	if authority != nil {
		parent, signer = authority.certificate, authority.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return nil, err
	}
	return writePair(directory, file, key, der)
}

func writePair(directory, file string, key *ecdsa.PrivateKey, der []byte) (*Pair, error) {
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	pair := &Pair{
		certificate: certificate,
		key:         key,
		certPEM:     pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		keyPEM:      keyPEM,
		certPath:    filepath.Join(directory, file+".crt"),
		keyPath:     filepath.Join(directory, file+".key"),
	}
	if err := os.WriteFile(pair.certPath, pair.certPEM, 0o600); err != nil {
		return nil, err
	}
	return pair, os.WriteFile(pair.keyPath, pair.keyPEM, 0o600)
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// newServiceAccountKey creates the key that signs the tokens of service accounts.
func newServiceAccountKey(directory string) (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	// Kubernetes derives the public key only from this older format of a private key.
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return "", err
	}
	path := filepath.Join(directory, "service-accounts.key")
	return path, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}
