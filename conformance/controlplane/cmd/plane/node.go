package main

import (
	_ "embed"
	"encoding/json"
	"net/http"
	"runtime"
)

// stages is the configuration of kwok for nodes and pods.
//
//go:embed stages.yaml
var stages string

const nodeName = "node-0"

// newNode returns a node without a machine.
func newNode() object {
	resources := object{"cpu": "64", "memory": "256Gi", "pods": "1000"}
	return object{
		"apiVersion": "v1",
		"kind":       "Node",
		"metadata": object{
			"name": nodeName,
			"labels": object{
				"kubernetes.io/hostname": nodeName, "kubernetes.io/os": "linux", "kubernetes.io/arch": runtime.GOARCH,
			},
		},
		"status": object{"capacity": resources, "allocatable": resources},
	}
}

// isNodeReady returns true if the node is ready and has no taints.
func (a *api) isNodeReady() bool {
	var node struct {
		Spec   struct{ Taints []object }
		Status struct {
			Conditions []struct{ Type, Status string }
		}
	}
	status, content := a.call(http.MethodGet, "/api/v1/nodes/"+nodeName, nil)
	if status != http.StatusOK || json.Unmarshal(content, &node) != nil || len(node.Spec.Taints) > 0 {
		return false
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == "Ready" {
			return condition.Status == "True"
		}
	}
	return false
}
