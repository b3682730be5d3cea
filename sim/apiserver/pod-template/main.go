// Prints the Go structs of a pod template: the fields of each struct in the order of their declaration, with their
// name in JSON and type. The hash of a template is computed over this form.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

type field [3]string

func main() {
	types := map[string][]field{}
	visit(reflect.TypeOf(corev1.PodTemplateSpec{}), types)
	names := []string{}
	for name := range types {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Println("{")
	for i, name := range names {
		row, err := json.Marshal(types[name])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		end := ","
		if i == len(names)-1 {
			end = ""
		}
		fmt.Printf("%q: %s%s\n", name, row, end)
	}
	fmt.Println("}")
}

func visit(t reflect.Type, types map[string][]field) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		visit(t.Elem(), types)
	case reflect.Map:
		visit(t.Key(), types)
		visit(t.Elem(), types)
	case reflect.Struct:
		if _, known := types[t.String()]; known {
			return
		}
		types[t.String()] = []field{}
		if t.PkgPath() != "k8s.io/api/core/v1" && !strings.HasSuffix(t.PkgPath(), "meta/v1") {
			return
		}
		for i := 0; i < t.NumField(); i++ {
			f := t.Field(i)
			name := strings.Split(f.Tag.Get("json"), ",")[0]
			types[t.String()] = append(types[t.String()], field{f.Name, name, describe(f.Type)})
			visit(f.Type, types)
		}
	}
}

// describe returns the name of a type, followed by a colon and its underlying type unless that is a struct.
func describe(t reflect.Type) string {
	if t.Kind() == reflect.Struct || t.String() == t.Kind().String() {
		return t.String()
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + describe(t.Elem())
	case reflect.Slice:
		if t.Name() != "" {
			return t.String() + ":[]" + describe(t.Elem())
		}
		return "[]" + describe(t.Elem())
	case reflect.Map:
		inner := "map[" + describe(t.Key()) + "]" + describe(t.Elem())
		if t.Name() != "" {
			return t.String() + ":" + inner
		}
		return inner
	default:
		return t.String() + ":" + t.Kind().String()
	}
}
