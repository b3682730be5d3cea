// Prints how the built-in kinds are encoded as protobuf messages: for each kind its type, and for each type the fields
// with number, name in JSON, type, 1 if JSON has them even if empty, and the name in Go if it differs from JSON's.
package main

import (
	"fmt"
	"reflect"
	"sort"
	"strings"

	discovery "k8s.io/api/apidiscovery/v2"
	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	registration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

var types = map[string][]string{}

func main() {
	kinds := []string{}
	for kind, t := range servedKinds() {
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

// servedKinds returns the kinds that an API server serves, and the metadata-only forms in which it returns them.
func servedKinds() map[schema.GroupVersionKind]reflect.Type {
	must(extensions.AddToScheme(scheme.Scheme))
	must(registration.AddToScheme(scheme.Scheme))
	kinds := map[schema.GroupVersionKind]reflect.Type{}
	for kind, t := range scheme.Scheme.AllKnownTypes() {
		if kind.Version == runtime.APIVersionInternal || kind.Group == meta.GroupName || kind.Kind == "WatchEvent" {
			continue
		}
		if strings.HasSuffix(kind.Kind, "Options") && kind.GroupVersion() != (schema.GroupVersion{Version: "v1"}) {
			continue
		}
		kinds[kind] = t
	}
	forms := []any{meta.PartialObjectMetadata{}, meta.PartialObjectMetadataList{}}
	for _, version := range []string{"v1", "v1beta1"} {
		for _, form := range forms {
			t := reflect.TypeOf(form)
			kinds[schema.GroupVersionKind{Group: meta.GroupName, Version: version, Kind: t.Name()}] = t
		}
	}
	kinds[discovery.SchemeGroupVersion.WithKind("APIGroupDiscoveryList")] = reflect.TypeOf(discovery.APIGroupDiscoveryList{})
	return kinds
}

func must(err error) {
	if err != nil {
		panic(err)
	}
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
		fields = append(fields, fmt.Sprintf("[%s,%q,%q,%d%s]", tag[1], json[0], describe(f.Type), alwaysPresent(f, json[1:]), goName(f, json[0])))
	}
	types[key(t)] = fields
}

// alwaysPresent is 1 if JSON has the field even if it is empty. In Go a struct is never empty.
func alwaysPresent(f reflect.StructField, options []string) int {
	omits := false
	for _, option := range options {
		if option == "omitzero" || option == "omitempty" && f.Type.Kind() != reflect.Struct {
			omits = true
		}
	}
	if omits {
		return 0
	}
	return 1
}

// goName is the name in Go, if it is not that of JSON with a capital letter.
func goName(f reflect.StructField, json string) string {
	if json != "" && strings.ToUpper(json[:1])+json[1:] == f.Name {
		return ""
	}
	return fmt.Sprintf(",%q", f.Name)
}

// describe returns the code of a type: s string, b bool, i integer, f float, y bytes, Q quantity, I integer or string,
// t time, u time with microseconds, d duration, R any object, F fieldsV1, *X optional, []X list, {}X map with string keys,
// E list of strings in a message of its own; in CRD schemas A schema or schemas, B schema or bool, S schema or strings;
// any other text is the name of a message.
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
	case "v1.FieldsV1":
		return "F"
	case "runtime.RawExtension", "v1.JSON":
		return "R"
	case "v1.JSONSchemaPropsOrArray":
		return "A"
	case "v1.JSONSchemaPropsOrBool":
		return "B"
	case "v1.JSONSchemaPropsOrStringArray":
		return "S"
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
