package main

import (
	"encoding/json"
	"os"
)

// object is a piece of JSON, which is YAML too.
type object = map[string]any

// writeKubeconfig writes how a user reaches the API server, with everything inside the one file.
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

// byCertificate is a user with a certificate. Bytes become base64 in JSON, as a kubeconfig wants them.
func byCertificate(pair *Pair) object {
	return object{"client-certificate-data": pair.certPEM, "client-key-data": pair.keyPEM}
}
