package wire

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// TestGenerated: the code says what plugin.proto says. A changed .proto without
// go generate fails here, without protoc.
func TestGenerated(t *testing.T) {
	text, err := os.ReadFile("../plugin.proto")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, m := range regexp.MustCompile(`(?m)^\s+(?:(\w+) )?(\w+) = (\d+);`).FindAllStringSubmatch(string(text), -1) {
		want = append(want, strings.TrimSpace(m[1]+" "+m[2])+" = "+m[3])
	}
	file := File_plugin_proto
	for i := range file.Enums().Len() {
		values := file.Enums().Get(i).Values()
		for j := range values.Len() {
			got = append(got, fmt.Sprintf("%s = %d", values.Get(j).Name(), values.Get(j).Number()))
		}
	}
	for i := range file.Messages().Len() {
		fields := file.Messages().Get(i).Fields()
		for j := range fields.Len() {
			f := fields.Get(j)
			kind := f.Kind().String()
			if f.Kind() == protoreflect.EnumKind {
				kind = string(f.Enum().Name())
			}
			got = append(got, fmt.Sprintf("%s %s = %d", kind, f.Name(), f.Number()))
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) < 12 || !slices.Equal(got, want) {
		t.Errorf("plugin.proto says\n%q\nthe code\n%q\nrun go generate ./sdk/plugin/wire", want, got)
	}
	if v := regexp.MustCompile(`(?m)^package (\S+);`).FindStringSubmatch(string(text)); v == nil || v[1] != string(file.Package()) {
		t.Errorf("package %v, the code has %s", v, file.Package())
	}
}

// TestService: the description of the service, which is written by hand, is
// that of the file.
func TestService(t *testing.T) {
	services := File_plugin_proto.Services()
	if services.Len() != 1 {
		t.Fatalf("%d services", services.Len())
	}
	s := services.Get(0)
	methods := s.Methods()
	if methods.Len() != 1 || len(Service.Streams) != 1 || len(Service.Methods) != 0 {
		t.Fatalf("%d methods, the code has %d and %d", methods.Len(), len(Service.Streams), len(Service.Methods))
	}
	m, d := methods.Get(0), Service.Streams[0]
	if Service.ServiceName != string(s.FullName()) || d.StreamName != string(m.Name()) || RunMethod != "/"+Service.ServiceName+"/"+d.StreamName {
		t.Errorf("%s.%s at %s, the file has %s", Service.ServiceName, d.StreamName, RunMethod, m.FullName())
	}
	if d.ServerStreams != m.IsStreamingServer() || d.ClientStreams != m.IsStreamingClient() {
		t.Error("the streams go other ways")
	}
	message := (&Message{}).ProtoReflect().Descriptor().FullName()
	if m.Input().FullName() != message || m.Output().FullName() != message {
		t.Errorf("messages %s and %s", m.Input().FullName(), m.Output().FullName())
	}
}
