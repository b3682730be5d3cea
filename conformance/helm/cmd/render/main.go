// Renders charts many times in one process, for a check that sets one value at a time.
//
// The argument is a file with a JSON list of requests. A JSON list with a response to each is printed.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/cli/values"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/getter"
)

// request names a chart, its release and its values.
type request struct {
	// Chart is the directory of the chart.
	Chart string `json:"chart"`
	// Release is the name of the release.
	Release string `json:"release"`
	// Namespace is the namespace of the release.
	Namespace string `json:"namespace"`
	// Files are values files.
	Files []string `json:"files"`
	// Set are values in the form of --set-json.
	Set []string `json:"set"`
}

// response has the rendered manifests by the names of their templates, or the reason of a refusal.
type response struct {
	Rendered map[string]string `json:"rendered,omitempty"`
	Refused  string            `json:"refused,omitempty"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) != 1 {
		return fmt.Errorf("the argument is a file with requests")
	}
	text, err := os.ReadFile(arguments[0])
	if err != nil {
		return err
	}
	var requests []request
	if err := json.Unmarshal(text, &requests); err != nil {
		return err
	}
	charts := map[string]*chart.Chart{}
	responses := make([]response, 0, len(requests))
	for _, request := range requests {
		if charts[request.Chart] == nil {
			if charts[request.Chart], err = loader.Load(request.Chart); err != nil {
				return err
			}
		}
		rendered, err := render(charts[request.Chart], request)
		if err != nil {
			responses = append(responses, response{Refused: err.Error()})
			continue
		}
		responses = append(responses, response{Rendered: rendered})
	}
	return json.NewEncoder(os.Stdout).Encode(responses)
}

func render(chart *chart.Chart, request request) (map[string]string, error) {
	options := values.Options{ValueFiles: request.Files, JSONValues: request.Set}
	merged, err := options.MergeValues(getter.Providers{})
	if err != nil {
		return nil, err
	}
	release := chartutil.ReleaseOptions{
		Name: request.Release, Namespace: request.Namespace, Revision: 1, IsInstall: true,
	}
	all, err := chartutil.ToRenderValues(chart, merged, release, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	rendered, err := engine.Render(chart, all)
	if err != nil {
		return nil, err
	}
	for name := range rendered {
		// Texts for people, which are not manifests.
		if strings.HasSuffix(name, "NOTES.txt") {
			delete(rendered, name)
		}
	}
	return rendered, nil
}
