package main

import (
	"encoding/json"
	"os"
)

// object is a JSON object.
type object = map[string]any

// writeKubeconfig writes a kubeconfig that contains all certificates and keys. JSON is valid YAML.
func writeKubeconfig(path, server string, authority []byte, user object) error {
	text, err := json.MarshalIndent(object{
		"apiVersion":      "v1",
		"kind":            "Config",
		"current-context": "sindri",
		"clusters":        []object{{"name": "sindri", "cluster": object{"server": server, "certificate-authority-data": authority}}},
		"users":           []object{{"name": "sindri", "user": user}},
		"contexts":        []object{{"name": "sindri", "context": object{"cluster": "sindri", "user": "sindri"}}},
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o600)
}

// byCertificate returns a user with a certificate. Go encodes bytes as base64 in JSON, as a kubeconfig requires.
func byCertificate(pair *Pair) object {
	return object{"client-certificate-data": pair.certPEM, "client-key-data": pair.keyPEM}
}
