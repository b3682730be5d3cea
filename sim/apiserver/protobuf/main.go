// Writes down how the built-in kinds are written as protobuf messages: for each kind its type, and for each type the
// fields with their numbers, their names in JSON, and what is in them.
package main

import (
	"fmt"
	"reflect"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

var types = map[string][]string{}

func main() {
	kinds := []string{}
	for kind, t := range scheme.Scheme.AllKnownTypes() {
		if kind.Version == "__internal" || kind.Group == "meta.k8s.io" || kind.Kind == "WatchEvent" {
			continue
		}
		if strings.HasSuffix(kind.Kind, "Options") && kind.GroupVersion() != (schema.GroupVersion{Version: "v1"}) {
			continue
		}
		visit(t)
		kinds = append(kinds, fmt.Sprintf("%q: %q", kind.Group+"/"+kind.Version+"/"+kind.Kind, key(t)))
	}
	sort.Strings(kinds)
	rows := []string{}
	for name, fields := range types {
		rows = append(rows, fmt.Sprintf("%q: [%s]", name, strings.Join(fields, ",")))
	}
	sort.Strings(rows)
	fmt.Printf("{\"kinds\": {\n%s\n}, \"types\": {\n%s\n}}\n", strings.Join(kinds, ",\n"), strings.Join(rows, ",\n"))
}

func key(t reflect.Type) string {
	parts := strings.Split(t.PkgPath(), "/")
	return strings.Join(parts[len(parts)-2:], "/") + "." + t.Name()
}

func visit(t reflect.Type) {
	if t.Kind() != reflect.Struct {
		return
	}
	if _, known := types[key(t)]; known {
		return
	}
	types[key(t)] = []string{}
	fields := []string{}
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		tag := strings.Split(f.Tag.Get("protobuf"), ",")
		if len(tag) < 2 {
			continue
		}
		json := strings.Split(f.Tag.Get("json"), ",")
		always := "0"
		if len(json) == 1 {
			always = "1"
		}
		fields = append(fields, fmt.Sprintf("[%s,%q,%q,%s]", tag[1], json[0], describe(f.Type), always))
	}
	types[key(t)] = fields
}

// s text, b truth, i number, f fraction, y bytes; Q an amount, I number or text, t time, u time with fractions, d span,
// R any object; *X may be missing, []X a list, {}X a map by text, E a list in a message; else a message.
func describe(t reflect.Type) string {
	switch t.String() {
	case "resource.Quantity":
		return "Q"
	case "intstr.IntOrString":
		return "I"
	case "v1.Time":
		return "t"
	case "v1.MicroTime":
		return "u"
	case "v1.Duration":
		return "d"
	case "runtime.RawExtension", "v1.FieldsV1":
		return "R"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + describe(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "y"
		}
		if t.Name() == "ExtraValue" || t.Name() == "Verbs" {
			return "E"
		}
		return "[]" + describe(t.Elem())
	case reflect.Map:
		return "{}" + describe(t.Elem())
	case reflect.String:
		return "s"
	case reflect.Bool:
		return "b"
	case reflect.Float64, reflect.Float32:
		return "f"
	case reflect.Struct:
		visit(t)
		return key(t)
	default:
		return "i"
	}
}
